//! `gpulock schema`: JSON Schemas, for editors and for programs that read results.

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;

use super::{Answer, Globals, output};
use crate::diag::Failure;
use crate::report::schema::ALL;

/// Flags of `gpulock schema`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Whose schema to print [default: list them]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(ALL.map(|schema| schema.name)))]
    name: Option<String>,
}

/// Runs it.
///
/// # Errors
/// When the output cannot be written.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    let list = || ALL.iter().map(|schema| format!("{:<10}{}\n", schema.name, schema.about)).collect();
    let named = args.name.as_ref().and_then(|name| ALL.iter().find(|schema| schema.name == name));
    let text: String = named.map_or_else(list, |schema| schema.text.to_owned());
    output::write(globals, &text)?;
    Ok(Answer::Yes)
}
