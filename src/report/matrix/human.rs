//! The tables as text.

use std::fmt::Write;

use super::table::Table;
use super::{Tables, rows};
use crate::python::PythonVersion;
use crate::version::{Capability, CodeKind, GpuCode};

pub(super) fn text(tables: &Tables<'_>) -> String {
    let mut sections = Vec::new();
    if let Some(rows) = &tables.builds {
        sections.push(builds(rows, tables));
    }
    sections.extend(tables.torch.as_ref().map(|rows| torch(rows, tables)));
    sections.extend(tables.cuda.as_ref().map(|rows| cuda(rows)));
    sections.extend(tables.driver.as_ref().map(|rows| driver(rows)));
    sections.extend(tables.gpus.as_ref().map(|rows| gpus(rows)));
    sections.extend(tables.cudnn.as_ref().map(|rows| cudnn(rows)));
    let mut commands = Table::new(&["On a machine", ""]);
    for command in tables.commands {
        commands.row([command.shows.to_owned(), command.command.replace(' ', "\u{a0}")]);
    }
    // Commands are not wrapped: they are there to be copied.
    sections.push(commands.text().replace('\u{a0}', " "));
    sections.join("\n")
}

fn builds(rows: &[rows::Build<'_>], tables: &Tables<'_>) -> String {
    let asked = tables.gpu.as_deref();
    let last = asked.map_or("GPU code, sm_".to_owned(), |sm| format!("{sm} by"));
    let head = ["torch", "build", "CUDA", "driver >=", "native >=", "cuDNN", "NCCL", "Python", &last];
    let mut table = Table::new(&head);
    for row in rows {
        let driver = row.driver.as_ref();
        table.row([
            row.torch.clone(),
            build(row.variant, row.index, tables),
            row.cuda.map_or("-".into(), |cuda| cuda.to_string()),
            driver.map_or("-".into(), |driver| or_unknown(driver.floor.as_ref())),
            driver.map_or("-".into(), |driver| or_unknown(driver.native.as_ref())),
            if row.cuda.is_some() { or_unknown(row.cudnn) } else { "-".into() },
            if row.cuda.is_some() { row.nccl.map_or("-".into(), ToString::to_string) } else { "-".into() },
            row.python.map_or("?".into(), pythons),
            match (row.cuda, row.code, asked) {
                (None, ..) => "-".into(),
                (_, None, _) => "?".into(),
                (_, Some(code), None) => codes(code),
                (_, Some(_), Some(_)) => or_unknown(row.serves_by.as_ref()),
            },
        ]);
    }
    table.group();
    let mut text = format!("What goes with what ({}), newest first\n\n{}", tables.platform, table.text());
    let _ = write!(
        text,
        "\n* from {}; others from the index torch-BUILD, or the one named. driver >=: what runs it at all;\n\
         native >=: what supports its CUDA in full. t: free-threaded Python too. ?: nobody has read it.\n\
         -: none, or nothing pinned. +: PTX too, which newer GPUs compile.\n",
        tables.default_index
    );
    text
}

/// `cu128*`, `cu126`, `cu117 (other-index)`
fn build(variant: &str, index: &str, tables: &Tables<'_>) -> String {
    if index == tables.default_index {
        format!("{variant}*")
    } else if index.strip_prefix("torch-") == Some(variant) {
        variant.to_owned()
    } else {
        format!("{variant} ({index})")
    }
}

fn torch(rows: &[rows::Torch<'_>], tables: &Tables<'_>) -> String {
    let mut table = Table::new(&["torch", "released", "Python", "torchvision", "torchaudio", "builds"]);
    for row in rows {
        let pair = |list: &Option<Vec<String>>| match list.as_deref() {
            None => "?".to_owned(),
            Some([]) => "none".into(),
            Some(list) => list.join(" "),
        };
        table.row([
            row.version.clone(),
            row.released.unwrap_or("?").into(),
            row.requires_python.unwrap_or("?").into(),
            pair(&row.torchvision),
            pair(&row.torchaudio),
            row.variants.iter().map(|v| build(v.variant, v.index, tables)).collect::<Vec<_>>().join(" "),
        ]);
    }
    format!("torch releases ({}), newest first; * from {}\n\n{}", tables.platform, tables.default_index, table.text())
}

fn cuda(rows: &[rows::Cuda<'_>]) -> String {
    let head = ["CUDA", "its driver", "driver >=", "native >=", "PTX", "GPUs, sm_"];
    let mut table = Table::new(&head);
    let mut last = None;
    for row in rows {
        // What is the same for all releases of a minor stands at its newest.
        let first = last.replace(row.minor) != Some(row.minor);
        let once = |text: String| if first { text } else { String::new() };
        table.row([
            row.version.to_string(),
            or_unknown(row.driver),
            once(or_unknown(row.support.floor.as_ref())),
            once(or_unknown(row.support.native.as_ref())),
            once(or_unknown(row.ptx_isa)),
            once(row.gpus.iter().map(|gpu| format!("{}{}", gpu.major, gpu.minor)).collect::<Vec<_>>().join(" ")),
        ]);
    }
    format!("CUDA releases, newest first\n\n{}", table.text())
}

fn driver(rows: &[rows::Driver<'_>]) -> String {
    let head = ["driver", "natively", "runs CUDA", "end of life", "designation", "cuda-compat of"];
    let mut table = Table::new(&head);
    for row in rows {
        let list = |items: Vec<String>| items.join(" ");
        table.row([
            format!("R{}", row.branch),
            row.cuda.map_or("?".into(), |cuda| format!("CUDA {cuda}")),
            list(row.families.iter().map(|family| format!("{family}.x")).collect()),
            row.eol.unwrap_or("?").into(),
            row.designation.unwrap_or("?").into(),
            list(row.forward.iter().map(ToString::to_string).collect()),
        ]);
    }
    format!("Driver branches, newest first\n\n{}", table.text())
}

fn gpus(rows: &[rows::GpuRow<'_>]) -> String {
    let mut table = Table::new(&["GPU", "architecture", "CUDA", "driver", "products"]);
    for row in rows {
        let end = |last: Option<String>| last.unwrap_or_default();
        let cuda = format!("{}-{}", or_unknown(row.first_cuda.as_ref()), end(row.last_cuda.map(|c| c.to_string())));
        let driver =
            format!("{}-{}", or_unknown(row.first_driver.as_ref()), end(row.last_branch.map(|b| format!("R{b}"))));
        let names: Vec<&str> = row.products.iter().flat_map(|row| row.names).map(String::as_str).collect();
        let architecture = if row.tegra { format!("{} (Tegra)", row.architecture) } else { row.architecture.into() };
        table.row([row.capability.to_string(), architecture, cuda, driver, names.join(", ")]);
    }
    format!("GPUs by compute capability, newest first\n\n{}", table.text())
}

fn cudnn(rows: &[rows::Cudnn<'_>]) -> String {
    let mut table = Table::new(&["cuDNN", "for CUDA", "driver >=", "glibc", "GPU code, sm_"]);
    for row in rows {
        let yanked = if row.yanked { " (withdrawn)" } else { "" };
        let code = match (row.code, row.capabilities) {
            (Some(code), _) => codes(code),
            (None, Some(documented)) => format!("documented: {}", capabilities(documented)),
            (None, None) => "?".into(),
        };
        table.row([
            format!("{}{yanked}", row.version),
            row.cuda_range.map_or_else(|| format!("{}.x", row.cuda), str::to_owned),
            row.driver.map_or("?".into(), ToString::to_string),
            or_unknown(row.glibc),
            code,
        ]);
    }
    table.group();
    format!("cuDNN releases, newest first\n\n{}", table.text())
}

fn or_unknown<T: ToString>(value: Option<&T>) -> String {
    value.map_or("?".into(), ToString::to_string)
}

/// `70 75 80 86 90 100 120+`
fn codes(code: &[GpuCode]) -> String {
    let number = |code: &GpuCode| {
        let text = code.to_string();
        text.split_once('_').map_or_else(|| text.clone(), |(_, number)| number.to_owned())
    };
    let ptx: Vec<String> = code.iter().filter(|code| code.kind == CodeKind::Ptx).map(number).collect();
    let sass = code.iter().filter(|code| code.kind == CodeKind::Sass).map(number);
    let mut parts: Vec<String> = sass.map(|sm| if ptx.contains(&sm) { format!("{sm}+") } else { sm }).collect();
    let bare = ptx.iter().filter(|number| !parts.contains(&format!("{number}+"))).map(|number| format!("{number}+"));
    let bare: Vec<String> = bare.collect();
    parts.extend(bare);
    parts.join(" ")
}

fn capabilities(list: &[Capability]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// `3.9-3.13 t`: a run of minors, and whether free-threaded builds are among them.
fn pythons(tags: &[String]) -> String {
    let all: Vec<PythonVersion> = tags.iter().filter_map(|tag| PythonVersion::from_tag(tag)).collect();
    let plain: Vec<&PythonVersion> = all.iter().filter(|python| !python.free_threaded).collect();
    let gapless = plain.windows(2).all(|pair| pair[0].major == pair[1].major && pair[0].minor + 1 == pair[1].minor);
    let text = match plain[..] {
        [] => String::new(),
        [only] => only.to_string(),
        [first, .., last] if gapless => format!("{first}-{last}"),
        _ => plain.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    };
    if all.iter().any(|python| python.free_threaded) { format!("{text} t") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_pythons_in_short() {
        let list = |text: &str| text.split(' ').map(|code| code.parse().unwrap()).collect::<Vec<GpuCode>>();
        assert_eq!(codes(&list("sm_70 sm_90a compute_90a sm_120 compute_120")), "70 90a+ 120+");
        assert_eq!(codes(&list("sm_70 compute_80")), "70 80+");
        let tags = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(pythons(&tags("cp39 cp310 cp311 cp313t")), "3.9-3.11 t");
        assert_eq!(pythons(&tags("cp37 cp39")), "3.7,3.9");
        assert_eq!(pythons(&tags("cp310")), "3.10");
    }
}
