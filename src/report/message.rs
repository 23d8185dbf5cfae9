//! What `gpulock explain` says: pages of rules, and of what is known of a message that somebody pasted; as text for people and
//! as `gpulock.explain/1` for programs.

use std::fmt::Write;

use serde::Serialize;

use super::json;
use crate::matrix::Meaning;
use crate::matrix::schema::{AnswerRow, MessageFile};

/// More are counted and left out: a number that several libraries have.
const MOST: usize = 6;

/// Pages, and what is said before them.
#[derive(Debug)]
pub struct Explained {
    remarks: Vec<String>,
    pages: Vec<Page>,
}

/// A page, in Markdown.
#[derive(Debug, Serialize)]
struct Page {
    title: String,
    text: String,
}

impl Explained {
    /// Pages in Markdown, each with its title in the first line.
    pub fn of_pages<'p>(pages: impl IntoIterator<Item = &'p str>) -> Self {
        Self { remarks: Vec::new(), pages: pages.into_iter().map(Page::of).collect() }
    }

    /// One page for each meaning.
    pub fn of_meanings(meanings: &[Meaning<'_>]) -> Self {
        let mut explained = Self { remarks: Vec::new(), pages: meanings.iter().take(MOST).map(page).collect() };
        if meanings.len() > MOST {
            explained.remarks.push(format!(
                "These are {MOST} of {}; name the library with the number: `gpulock explain cuBLAS status 1`",
                meanings.len()
            ));
        }
        explained
    }

    /// What a number may be of which it is not said whose it is.
    pub fn of_any(number: u32, meanings: &[Meaning<'_>]) -> Self {
        let mut explained = Self::of_meanings(meanings);
        explained.remarks.insert(0, format!("It is not said which library {number} is of. These have it:"));
        explained
    }

    /// A status that a program ended with by its own choice.
    pub fn own_exit(status: i64) -> Self {
        Self { remarks: Vec::new(), pages: vec![own_exit(status)] }
    }

    /// A number that nobody has, and how to get the real error.
    pub fn unknown(number: u32, facts: &MessageFile) -> Self {
        Self { remarks: Vec::new(), pages: vec![unknown(number, facts)] }
    }

    /// For people.
    pub fn human(&self) -> String {
        let remarks: String = self.remarks.iter().map(|remark| format!("{remark}\n\n")).collect();
        let pages: Vec<String> = self.pages.iter().map(|page| format!("# {}\n\n{}\n", page.title, page.text)).collect();
        remarks + &pages.join("\n")
    }

    /// For programs.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Json<'e> {
            schema: &'static str,
            remarks: &'e [String],
            pages: &'e [Page],
        }
        json::text(&Json { schema: "gpulock.explain/1", remarks: &self.remarks, pages: &self.pages })
    }
}

impl Page {
    fn of(markdown: &str) -> Self {
        let (title, text) = markdown.split_once('\n').unwrap_or((markdown, ""));
        Self { title: title.trim_start_matches("# ").to_owned(), text: text.trim().to_owned() }
    }
}

fn own_exit(status: i64) -> Page {
    let text = "The program chose this status itself, and it says no more than that something failed: Python ends with 1 after an \
                exception that nobody caught. A death by a signal is 128 and its number, or the number with a minus.\n\n\
                What to do: explain the line above it that names the error; of several ranks, the earliest.\n\n\
                Source: https://docs.python.org/3/library/sys.html#sys.exit; \
                https://www.gnu.org/software/bash/manual/html_node/Exit-Status.html";
    Page { title: format!("Exit status {status}"), text: text.to_owned() }
}

fn unknown(number: u32, facts: &MessageFile) -> Page {
    let names: Vec<&str> = facts.components.iter().map(|row| row.name.as_str()).collect();
    let steps: String = facts.unknown.steps.iter().map(|step| format!("- {step}\n")).collect();
    let text = format!(
        "No component defines {number}: it is no status of {}, and no exit status of a process that is known here. Somebody \
         passed on a number that is none, or one of another program.\n\nHow to get the real error:\n\n{steps}\nSource: {}",
        names.join(", "),
        facts.unknown.source
    );
    Page { title: number.to_string(), text }
}

fn page(meaning: &Meaning<'_>) -> Page {
    match meaning {
        Meaning::Status(component, number, answer) => {
            let names = component.statuses.get(&number.to_string()).map(|names| names.join(", ")).unwrap_or_default();
            let text = match answer {
                Some(answer) => said(&format!("{}: ", answer.title), answer),
                None => format!(
                    "Nothing more is known of it here. CUDA_LAUNCH_BLOCKING=1 shows the call that returns it.\n\nSource: {}",
                    component.source
                ),
            };
            Page { title: format!("{} {number}: {names}", component.name), text }
        }
        Meaning::Text(answer) => Page { title: answer.title.clone(), text: said("", answer) },
        Meaning::Exit(row) => {
            let signal = row.signal.as_ref().map(|signal| format!(" ({signal})")).unwrap_or_default();
            let cause = format!("{}: {}", row.title, row.cause);
            let text = text(&cause, &row.fix, None, row.command.as_deref(), &row.source);
            Page { title: format!("Exit status {}{signal}", row.status), text }
        }
        Meaning::Tool(row) => {
            let cause = format!("Gone since {}", row.since);
            Page { title: row.names.join(", "), text: text(&cause, &row.instead, None, None, &row.source) }
        }
    }
}

fn said(before: &str, answer: &AnswerRow) -> String {
    let cause = capital(&format!("{before}{}", answer.cause));
    text(&cause, &answer.fix, answer.rule.as_deref(), answer.command.as_deref(), &answer.source)
}

fn text(cause: &str, fix: &str, rule: Option<&str>, command: Option<&str>, source: &str) -> String {
    let mut text = format!("{cause}.\n\nWhat to do: {fix}.\n\n");
    if let Some(rule) = rule {
        let _ = writeln!(text, "Rule: {rule} (`gpulock explain {rule}`)");
    }
    if let Some(command) = command {
        let _ = writeln!(text, "Command: `{command}`");
    }
    text + "Source: " + source
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    // Names keep their small letter: `libcuda`, `cuDNN`.
    match chars.next() {
        Some(first) if text.split(' ').next().is_some_and(|word| word.chars().skip(1).all(char::is_lowercase)) => {
            first.to_uppercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
