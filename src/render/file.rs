//! A file that a template makes of one target: the values are the lock's, the options those of the header.

use super::context::context;
use super::format::FileFormat;
use super::options::Options;
use super::{Beside, Format, all_known, dockerfile, header, quote, refused_variables};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::lock::{Lock, Target};

pub(super) fn render(
    format: &'static FileFormat,
    lock: &Lock,
    target: &Target,
    beside: &Beside<'_>,
) -> Result<String, Failure> {
    if format.hashes {
        all_known(target, format.name)?;
    }
    if format.on_image {
        dockerfile::image(target)?;
    }
    let options = beside.options.only(format.takes);
    image(format, &options)?;
    refused_variables(target, format.name, format.refuses)?;
    let template = beside.template.unwrap_or_else(|| format.template());
    let values = context(lock, target, beside.lock_name, &options);
    let body = template
        .render(format.template(), values, &format!("gpulock export {}", format.name))
        .map_err(Failure::unanswerable)?;
    let body = body.trim();
    // The interpreter of a script is named in the first line or not at all.
    let (first, body) = match body.split_once('\n') {
        Some((first, rest)) if first.starts_with("#!") => (format!("{first}\n"), rest),
        _ => (String::new(), body),
    };
    let header = header(lock, target, Format::File(format));
    let template = format!("{}Template: {}\n", format.comment, template.hash(format.template()));
    let options = options.line().map(|line| format!("{}Options: {line}\n", format.comment)).unwrap_or_default();
    Ok(format!("{first}{header}{template}{options}{body}\n"))
}

/// Refuses what is no name of an image, and a format without the one that it needs.
fn image(format: &FileFormat, options: &Options) -> Result<(), Failure> {
    let Some(image) = &options.image else {
        let message = format!("{} runs an image, and none is named", format.name);
        let seen = Evidence::observed("command line", "no --image");
        let fix = "name the one that was built of the Dockerfile and pushed: --image registry.example/NAME:TAG";
        return match format.needs_image {
            true => Err(Failure::unanswerable(Diagnostic::error("image-not-named", message, seen).fix(fix))),
            false => Ok(()),
        };
    };
    quote::reference(image).map(drop).map_err(|_| {
        let message = format!("{image:?} is not the name of an image");
        let seen = Evidence::observed("--image", "letters, digits and `. / : _ - @` make the name of an image");
        Failure::unanswerable(Diagnostic::error("usage", message, seen).fix("write it as REGISTRY/NAME:TAG"))
    })
}
