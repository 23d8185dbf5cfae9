//! A template of the user's own, as what is to be rendered: it may be handed to another process, which may end over it.
//!
//! Fuel bounds what a template does and the data that it makes. Nothing in this process bounds how deep an expression or a
//! value is nested, and a stack that overflows ends it. A process of its own has limits of stack, memory and time, and what
//! ends there over a template is one more fault of the template.

use std::borrow::Cow;
use std::sync::OnceLock;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use serde::{Deserialize, Serialize};

use super::quote;

/// How many instructions a template may take: hundreds of times those of the embedded ones, and a second at most.
const FUEL: u64 = 2_000_000;
/// What a template of the user's own is called inside.
const OWN: &str = "template";

/// One template, the embedded one that it may extend, and the values.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task<'a> {
    /// Name of the embedded one: `Dockerfile`.
    pub(super) base: Cow<'a, str>,
    /// Its text.
    pub(super) base_text: Cow<'a, str>,
    /// The text of the one that is rendered.
    pub(super) text: Cow<'a, str>,
    /// What it sees.
    pub(super) values: serde_json::Value,
}

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Whether it showed in the embedded template: it is of a value, or of a block that was left out.
    pub in_base: bool,
    /// Its line, where that is known.
    pub line: Option<usize>,
    /// What.
    pub message: String,
}

/// Renders a task elsewhere.
pub type Renderer = fn(&Task<'_>) -> Result<String, Fault>;

static RENDERER: OnceLock<Renderer> = OnceLock::new();

/// Has the templates of users rendered by `renderer` from now on, once for the whole process.
pub fn render_apart(renderer: Renderer) {
    // The first one stays.
    let _ = RENDERER.set(renderer);
}

impl Task<'_> {
    /// Renders it where it may do no harm to this process.
    pub(super) fn render_apart(&self) -> Result<String, Fault> {
        let renderer = RENDERER.get().filter(|_| self.text != self.base_text);
        renderer.map_or_else(|| self.render(), |renderer| renderer(self))
    }

    /// Renders it here. Undefined values are errors.
    ///
    /// # Errors
    /// Where the template is wrong.
    pub fn render(&self) -> Result<String, Fault> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        quote::add_to(&mut environment);
        let rendered = environment
            .add_template(&self.base, &self.base_text)
            .and_then(|()| environment.add_template(OWN, &self.text))
            .and_then(|()| environment.get_template(OWN)?.render(Value::from(Serde(&self.values))));
        rendered.map_err(|error| fault(&error))
    }
}

fn fault(error: &minijinja::Error) -> Fault {
    let mut causes = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(one) = cause {
        causes.push(one.to_string());
        cause = one.source();
    }
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    let message = std::iter::once(what).chain(causes).collect::<Vec<_>>().join(": ");
    Fault { in_base: error.name() != Some(OWN), line: error.line(), message }
}
