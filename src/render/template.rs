//! Templates of generated files: takes one and the values of a target, gives text; a fault is named with its line.

use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};

use super::quote;
use crate::diag::{Diagnostic, Evidence};
use crate::lock::sha256;

/// How many instructions a template may take: hundreds of times those of the embedded ones, and a second at most.
const FUEL: u64 = 2_000_000;

/// A template: its name for messages, and its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template<'a> {
    /// As the user named it; for an embedded one, what others extend it by: `{% extends "Dockerfile" %}`.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Template<'_> {
    /// The hash that names it in what it renders; one that may extend `embedded` changes with that.
    pub(super) fn hash(&self, embedded: Template<'_>) -> String {
        match self.text == embedded.text {
            true => sha256(embedded.text.as_bytes()),
            false => sha256(format!("{}{}", embedded.text, self.text).as_bytes()),
        }
    }

    /// Its text with `values` in it. Undefined values are errors.
    ///
    /// # Errors
    /// Where it is wrong, `command` being the one that prints a template that is not.
    pub(super) fn render(&self, embedded: Template<'_>, values: Value, command: &str) -> Result<String, Diagnostic> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        quote::add_to(&mut environment);
        let rendered = environment
            .add_template(embedded.name, embedded.text)
            .and_then(|()| environment.add_template("template", self.text))
            .and_then(|()| environment.get_template("template")?.render(values));
        rendered.map_err(|error| self.explain(&error, embedded.name, command))
    }

    fn explain(&self, error: &minijinja::Error, embedded: &str, command: &str) -> Diagnostic {
        // Inside the embedded template a fault is of a value or of a block that was left out.
        let name = if error.name() == Some("template") { self.name } else { embedded };
        let place = error.line().map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"));
        let mut causes = Vec::new();
        let mut cause = std::error::Error::source(error);
        while let Some(one) = cause {
            causes.push(one.to_string());
            cause = one.source();
        }
        let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let message = std::iter::once(what).chain(causes).collect::<Vec<_>>().join(": ");
        Diagnostic::error(
            "template-invalid",
            format!("the template cannot be used: {message}"),
            Evidence::observed(place, message),
        )
        .fix(format!("`{command} --print-template` shows one that can"))
    }
}
