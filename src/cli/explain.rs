//! `gpulock explain CODE`: a rule's page.

use clap::Args as ClapArgs;

use super::{Answer, Globals, output};
use crate::check::rule;
use crate::diag::{Diagnostic, Evidence, Failure, did_you_mean};

/// Flags of `gpulock explain`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The code of a finding, such as gpu-code-missing; all codes when left out
    code: Option<String>,
}

/// Runs it.
///
/// # Errors
/// No rule of that name, output that cannot be written.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let Some(code) = &args.code else {
        output::write(globals, &list())?;
        return Ok(Answer::Yes);
    };
    match rule::find(code) {
        Some(rule) => output::write(globals, rule.page)?,
        None => {
            let fix = match did_you_mean(code, rule::ALL.iter().map(|rule| rule.code)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`gpulock explain` lists all".to_owned(),
            };
            let evidence = Evidence::observed("command line", format!("{} rules, none of that name", rule::ALL.len()));
            let error = Diagnostic::error("rule-unknown", format!("there is no rule `{code}`"), evidence);
            return Err(Failure::unanswerable(error.fix(fix)));
        }
    }
    Ok(Answer::Yes)
}

/// Each rule with the first sentence of its page.
fn list() -> String {
    let widest = rule::ALL.iter().map(|rule| rule.code.len()).max().unwrap_or(0);
    let line = |rule: &crate::check::Rule| {
        let text = rule.page.split("\n\n").nth(1).unwrap_or_default().replace('\n', " ");
        let end = text.find(". ").map_or(text.len(), |end| end + 1);
        format!("{:widest$}  {}\n", rule.code, &text[..end])
    };
    let mut rules: Vec<_> = rule::ALL.iter().collect();
    rules.sort_by_key(|rule| rule.code);
    rules.into_iter().map(line).collect()
}
