//! A file that a template makes of one target: the values are the lock's, the options those of the header.

use super::context::context;
use super::format::FileFormat;
use super::options::Options;
use super::{Beside, Format, all_known, dockerfile, header, lock_name, quote, refused_variables};
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
        .map_err(|fault| Failure::unanswerable(lock_name(format.on_image, beside.lock_name, fault)))?;
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
    let refuse = |what: &str, fix: String| {
        let message = format!("{image:?} is not the name of an image");
        let seen = Evidence::observed("--image", what);
        Err(Failure::unanswerable(Diagnostic::error("usage", message, seen).fix(fix)))
    };
    match image.split_once("://") {
        Some((scheme, name)) => refuse(
            "`SCHEME://` says how an image is fetched, and is no part of its name",
            format!("leave out `{scheme}://`: --image {}", quote::word(name)),
        ),
        None if quote::reference(image).is_err() => refuse(
            "letters, digits and `. / : _ - @` make the name of an image",
            "write it as REGISTRY/NAME:TAG".into(),
        ),
        None => Ok(()),
    }
}
