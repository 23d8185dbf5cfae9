//! `gpulock explain CODE`: a rule's page.

use clap::Args as ClapArgs;

use super::{Answer, Globals, output};
use crate::check;
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
    let pages = check::pages();
    match pages.iter().find(|page| page.code == code) {
        Some(page) => output::write(globals, page.text)?,
        None => {
            let fix = match did_you_mean(code, pages.iter().map(|page| page.code)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`gpulock explain` lists all".to_owned(),
            };
            let evidence = Evidence::observed("command line", format!("{} rules, none of that name", pages.len()));
            let error = Diagnostic::error("rule-unknown", format!("there is no rule `{code}`"), evidence);
            return Err(Failure::unanswerable(error.fix(fix)));
        }
    }
    Ok(Answer::Yes)
}

/// Each rule with the first sentence of its page.
fn list() -> String {
    let pages = check::pages();
    let widest = pages.iter().map(|page| page.code.len()).max().unwrap_or(0);
    pages.iter().map(|page| format!("{:widest$}  {}\n", page.code, page.summary())).collect()
}
