//! Templates of generated files: takes one and the values of a target, gives text; a fault is named with its line.

use super::apart::{Fault, Task};
use super::blocks;
use crate::diag::{Diagnostic, Evidence};
use crate::digest::sha256;

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

    /// Its text with `values` in it.
    ///
    /// # Errors
    /// Where it is wrong, `command` being the one that prints a template that is not.
    pub(super) fn render(
        &self,
        embedded: Template<'_>,
        values: serde_json::Value,
        command: &str,
    ) -> Result<String, Diagnostic> {
        let task = Task { base: embedded.name.into(), base_text: embedded.text.into(), text: self.text.into(), values };
        let rendered = task.render_apart().and_then(|text| {
            let is_own = self.text != embedded.text;
            let lost = is_own.then(|| blocks::lost(self.text, embedded.name, embedded.text)).flatten();
            lost.map_or(Ok(text), Err)
        });
        rendered.map_err(|fault| self.explain(&fault, embedded.name, command))
    }

    fn explain(&self, fault: &Fault, embedded: &str, command: &str) -> Diagnostic {
        let name = if fault.in_base { embedded } else { self.name };
        let place = fault.line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"));
        Diagnostic::error(
            "template-invalid",
            format!("the template cannot be used: {}", fault.message),
            Evidence::observed(place, &*fault.message),
        )
        .fix(format!("`{command} --print-template` shows one that can"))
    }
}
