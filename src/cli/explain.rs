//! `gpulock explain WHAT`: a rule's page, or what is known of a number, a name or a message that somebody pasted.

use std::io::Read;

use clap::Args as ClapArgs;

use super::{Answer, Globals, output};
use crate::check;
use crate::diag::{Diagnostic, Evidence, Failure, did_you_mean};
use crate::matrix::{number, own_status};
use crate::report::message;

/// Flags of `gpulock explain`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The code of a finding or an error (gpu-code-missing, usage), a status by number or name (209, CUDNN_STATUS_NOT_SUPPORTED), an exit
    /// status, or a message; `-` reads one from standard input; all codes when left out
    #[arg(value_name = "WHAT", allow_hyphen_values = true)]
    what: Vec<String>,
}

/// A log of that size says more than anybody can explain, in bytes.
const LONGEST: u64 = 1 << 20;

/// Words of a text that is about a number alone: `RuntimeError: failed with error code 35`.
const MOST_WORDS: usize = 6;

/// Runs it.
///
/// # Errors
/// Nothing of that name and nothing that is known, input that cannot be read, output that cannot be written.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let text = match &args.what[..] {
        [] => {
            output::write(globals, &list())?;
            return Ok(Answer::Yes);
        }
        [one] if one == "-" => from_stdin()?,
        words => words.join(" "),
    };
    let pages = check::pages();
    if let Some(page) = pages.iter().find(|page| page.code == text) {
        output::write(globals, page.text)?;
        return Ok(Answer::Yes);
    }
    if let Some(page) = check::message(&text) {
        output::write(globals, &format!("{}\n", page.trim_end()))?;
        return Ok(Answer::Yes);
    }
    let matrix = globals.matrix()?;
    let facts = matrix.message()?;
    let meanings = facts.meanings(&text);
    if !meanings.is_empty() {
        output::write(globals, &message::pages(&meanings))?;
        return Ok(Answer::Yes);
    }
    if let Some(status) = own_status(&text) {
        output::write(globals, &message::own_exit(status))?;
        return Ok(Answer::Yes);
    }
    let number = number(&text).or_else(|| facts.stray(&text));
    match number.map(|number| (number, facts.meanings(&number.to_string()))) {
        Some((number, meanings)) if meanings.is_empty() => {
            output::write(globals, &message::unknown(number, facts))?;
            Ok(Answer::Yes)
        }
        // In a longer text it is that of a program that is not known here.
        Some((number, meanings)) if text.split_whitespace().count() <= MOST_WORDS => {
            output::write(globals, &message::of_any(number, &meanings))?;
            Ok(Answer::Yes)
        }
        _ => Err(not_known(&text, &pages)),
    }
}

fn from_stdin() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LONGEST).read_to_end(&mut bytes).map_err(|error| {
        let evidence = Evidence::observed("standard input", error.to_string());
        Failure::unanswerable(Diagnostic::error("cannot-read", "standard input cannot be read", evidence))
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn not_known(text: &str, pages: &[check::Page]) -> Failure {
    let first = text.lines().next().unwrap_or_default();
    if first.contains(' ') {
        let evidence = Evidence::observed("command line", first.to_owned());
        let error = Diagnostic::error("message-unknown", "nothing is known of this message", evidence);
        return Failure::unanswerable(
            error.fix("name the line with the error alone; `gpulock explain` lists all rules"),
        );
    }
    let messages = check::messages().filter_map(|page| page.lines().next()?.strip_prefix("# "));
    let fix = match did_you_mean(first, pages.iter().map(|page| page.code).chain(messages)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`gpulock explain` lists all".to_owned(),
    };
    let evidence = Evidence::observed("command line", format!("{} rules, none of that name", pages.len()));
    let error = Diagnostic::error("rule-unknown", format!("there is no rule `{first}`"), evidence);
    Failure::unanswerable(error.fix(fix))
}

/// Each rule with the first sentence of its page.
fn list() -> String {
    let pages = check::pages();
    let widest = pages.iter().map(|page| page.code.len()).max().unwrap_or(0);
    pages.iter().map(|page| format!("{:widest$}  {}\n", page.code, page.summary())).collect()
}
