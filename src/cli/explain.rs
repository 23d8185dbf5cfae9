//! `gpulock explain WHAT`: a rule's page, or what is known of a number, a name or a message that somebody pasted.

use std::io::Read;

use clap::Args as ClapArgs;

use super::{Answer, Form, Globals, output};
use crate::check::{self, Page};
use crate::diag::{Diagnostic, Evidence, Failure, did_you_mean};
use crate::matrix::{number, own_status};
use crate::report::message::Explained;

/// Flags of `gpulock explain`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The code of a finding or an error (gpu-code-missing, usage), a status by number or name (209, CUDNN_STATUS_NOT_SUPPORTED), an exit
    /// status, or a message; `-` reads one from standard input; all codes when left out
    #[arg(value_name = "WHAT", allow_negative_numbers = true)]
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
    let pages = check::pages();
    let explained = match &args.what[..] {
        [] if globals.form() == Form::Human => {
            output::write(globals, &list(&pages))?;
            return Ok(Answer::Yes);
        }
        [] => Explained::of_pages(pages.iter().map(|page| page.text)),
        [one] if one == "-" => explained(&from_stdin()?, &pages, globals)?,
        words => explained(&words.join(" "), &pages, globals)?,
    };
    match globals.form() {
        Form::Human => output::write(globals, &explained.human())?,
        Form::Json => output::write(globals, &explained.json())?,
    }
    Ok(Answer::Yes)
}

fn explained(text: &str, pages: &[Page], globals: &Globals) -> Result<Explained, Failure> {
    if let Some(page) = pages.iter().find(|page| page.code == text) {
        return Ok(Explained::of_pages([page.text]));
    }
    if let Some(page) = check::message(text) {
        return Ok(Explained::of_pages([page]));
    }
    let matrix = globals.matrix()?;
    let facts = matrix.message()?;
    let meanings = facts.meanings(text);
    if !meanings.is_empty() {
        return Ok(Explained::of_meanings(&meanings));
    }
    if let Some(status) = own_status(text) {
        return Ok(Explained::own_exit(status));
    }
    let number = number(text).or_else(|| facts.stray(text));
    match number.map(|number| (number, facts.meanings(&number.to_string()))) {
        Some((number, meanings)) if meanings.is_empty() => Ok(Explained::unknown(number, facts)),
        // In a longer text it is that of a program that is not known here.
        Some((number, meanings)) if text.split_whitespace().count() <= MOST_WORDS => {
            Ok(Explained::of_any(number, &meanings))
        }
        _ => Err(not_known(text, pages)),
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

fn not_known(text: &str, pages: &[Page]) -> Failure {
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
fn list(pages: &[Page]) -> String {
    let widest = pages.iter().map(|page| page.code.len()).max().unwrap_or(0);
    pages.iter().map(|page| format!("{:widest$}  {}\n", page.code, page.summary())).collect()
}
