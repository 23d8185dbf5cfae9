//! Environment twins of flags that take no value: a word becomes yes or no, or is refused.

use std::ffi::OsStr;

use clap::builder::{Resettable, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, Error};

/// Reads `true`, `1`, `yes`, `on` and their opposites; an empty variable counts as unset.
#[derive(Debug, Clone, Copy)]
struct Switch;

impl TypedValueParser for Switch {
    type Value = bool;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<bool, Error> {
        let text = value.to_string_lossy();
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" | "" => Ok(false),
            _ => {
                let variable = arg.and_then(Arg::get_env).map(OsStr::to_string_lossy).unwrap_or_default();
                let message = format!(
                    "the environment variable {variable} is `{text}`, which is neither yes nor no\n\n  \
                     write 1, true, yes or on, or 0, false, no or off\n"
                );
                Err(Error::raw(ErrorKind::InvalidValue, message).with_cmd(command))
            }
        }
    }
}

/// Has the flag, if it takes no value, read its variable so; of whatever flag, an empty variable counts as unset.
pub fn strict(arg: Arg) -> Arg {
    let is_empty = arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    let arg = if is_empty { arg.env(Resettable::Reset) } else { arg };
    match arg.get_action() {
        ArgAction::SetTrue => arg.value_parser(Switch),
        _ => arg,
    }
}
