//! `gpulock matrix audit`: where the matrix and its indexes differ.

use crate::cli::{Answer, Form, Globals, output};
use crate::diag::Failure;
use crate::report::matrix::{audited, audited_json};

/// Runs it.
///
/// # Errors
/// When the default index cannot be asked, or the matrix cannot be read.
pub fn run(globals: &Globals) -> Result<Answer, Failure> {
    super::needs_network(globals, "an audit")?;
    let matrix = globals.matrix()?;
    let (client, index) = super::client_of(&matrix, globals)?;
    let audit = crate::refresh::audit(&matrix, &client, &index)?;
    let text = match globals.form() {
        Form::Human => audited(&audit),
        Form::Json => audited_json(&audit),
    };
    output::write(globals, &text)?;
    globals.tell(&client.warnings());
    Ok(if audit.differences.is_empty() { Answer::Yes } else { Answer::No })
}
