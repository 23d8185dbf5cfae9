//! `pyproject.toml`: `[project]` (PEP 621), the indexes of uv, and the dependencies of Poetry.

use std::collections::BTreeMap;

use super::Findings;
use crate::diag::{Failure, SourceText};
use crate::manifest::reader::{Reader, Section, Text, parse_toml};
use crate::manifest::value::{parse_package_name, parse_python, parse_specifiers};
use crate::python::PackageName;

pub(super) fn read(source: SourceText<'_>, found: &mut Findings) -> Result<(), Failure> {
    let document = parse_toml(source)?;
    let root = Section::root(&document);
    // Problems of a file that belongs to other tools are theirs to tell.
    let mut reader = Reader::new(source);
    if let Some(project) = root.table_at("project", "[project]".into()) {
        project_table(&mut reader, &project, found);
    }
    groups(&mut reader, &root, found);
    let Some(tool) = root.table_at("tool", "[tool]".into()) else { return Ok(()) };
    if let Some(uv) = tool.table_at("uv", "[tool.uv]".into()) {
        uv_indexes(&mut reader, &uv, found);
    }
    if let Some(poetry) = tool.table_at("poetry", "[tool.poetry]".into()) {
        poetry_dependencies(&mut reader, &poetry, found);
    }
    Ok(())
}

fn project_table(reader: &mut Reader<'_>, project: &Section<'_>, found: &mut Findings) {
    if let Some(text) = reader.text(project, "requires-python") {
        python(reader, &text, text.value, found);
    }
    for text in reader.texts(project, "dependencies").unwrap_or_default() {
        found.requirement(text.value, reader.place(&text.span));
    }
}

fn python(reader: &Reader<'_>, text: &Text<'_>, range: &str, found: &mut Findings) {
    let place = reader.place(&text.span);
    match parse_python(range) {
        Ok(ask) => found.python(ask, place),
        Err(error) => found.not_understood(place, error.message, "set `python` in [stack]"),
    }
}

/// Extras and dependency groups are not installed by default; torch in one of them is worth a word.
fn groups(reader: &mut Reader<'_>, root: &Section<'_>, found: &mut Findings) {
    let extras = root
        .table_at("project", String::new())
        .and_then(|project| project.table_at("optional-dependencies", "[project.optional-dependencies]".into()));
    for section in [extras, root.table_at("dependency-groups", "[dependency-groups]".into())].into_iter().flatten() {
        for group in section.keys() {
            for text in reader.texts(&section, group).unwrap_or_default() {
                let name = text.value.split(|c: char| !c.is_ascii_alphanumeric()).next();
                if name == Some("torch") {
                    let message =
                        format!("`{}` of `{group}` in {} is not installed by default", text.value, section.name);
                    found.not_understood(reader.place(&text.span), message, "set `torch` in [stack] if it is meant");
                }
            }
        }
    }
}

fn uv_indexes(reader: &mut Reader<'_>, uv: &Section<'_>, found: &mut Findings) {
    let mut packages: BTreeMap<String, Vec<PackageName>> = BTreeMap::new();
    if let Some(sources) = uv.table_at("sources", "[tool.uv.sources]".into()) {
        for key in sources.keys() {
            let alternatives = match sources.table_at(key, key.into()) {
                Some(table) => vec![table],
                None => reader.sections(&sources, key, key),
            };
            let indexes: Vec<&str> =
                alternatives.iter().filter_map(|one| reader.text(one, "index")).map(|text| text.value).collect();
            if indexes.is_empty() {
                let place = reader.place(&sources.value_span(key));
                found.not_understood(place, format!("the source of `{key}` is no index"), "it cannot be locked");
            }
            if let Ok(package) = key.parse::<PackageName>() {
                for index in indexes {
                    packages.entry(index.to_owned()).or_default().push(package.clone());
                }
            }
        }
    }
    for index in reader.sections(uv, "index", "[[tool.uv.index]]") {
        let (name, url) = (reader.text(&index, "name"), reader.text(&index, "url"));
        let Some(url) = url else { continue };
        let name = name.map(|name| name.value);
        let listed = name.and_then(|name| packages.get(name)).cloned().unwrap_or_default();
        found.index(name, url.value, &listed, reader.place(&url.span));
    }
    for text in reader.texts(uv, "extra-index-url").unwrap_or_default() {
        found.index(None, text.value, &[], reader.place(&text.span));
    }
}

fn poetry_dependencies(reader: &mut Reader<'_>, poetry: &Section<'_>, found: &mut Findings) {
    let mut packages: BTreeMap<String, Vec<PackageName>> = BTreeMap::new();
    if let Some(section) = poetry.table_at("dependencies", "[tool.poetry.dependencies]".into()) {
        for key in section.keys() {
            let place = reader.place(&section.value_span(key));
            let table = section.table_at(key, format!("`{key}` of {}", section.name));
            let version = match &table {
                Some(table) => reader.text(table, "version"),
                None => reader.text(&section, key),
            };
            let Some(version) = version else {
                let fix = "if it stands on an index, add it to [packages]";
                found.not_understood(place, format!("`{key}` names no version on an index"), fix);
                continue;
            };
            let range = pep440_of(version.value);
            if key == "python" {
                python(reader, &version, &range, found);
                continue;
            }
            let (Ok(package), Ok(specifiers)) = (parse_package_name(key), parse_specifiers(&range)) else {
                let fix = "add it to [packages] with a PEP 440 version";
                found.not_understood(place, format!("`{key} = \"{}\"` is not understood", version.value), fix);
                continue;
            };
            let extras = table.as_ref().and_then(|table| reader.texts(table, "extras")).unwrap_or_default();
            let extras = extras.iter().filter_map(|extra| extra.value.parse().ok()).collect();
            if let Some(source) = table.as_ref().and_then(|table| reader.text(table, "source")) {
                packages.entry(source.value.to_owned()).or_default().push(package.clone());
            }
            found.ask(package, extras, specifiers, place);
        }
    }
    for index in reader.sections(poetry, "source", "[[tool.poetry.source]]") {
        let (name, url) = (reader.text(&index, "name"), reader.text(&index, "url"));
        let (Some(name), Some(url)) = (name, url) else { continue };
        let listed = packages.get(name.value).cloned().unwrap_or_default();
        found.index(Some(name.value), url.value, &listed, reader.place(&url.span));
    }
}

/// Poetry's ranges as PEP 440: `^2.3` is `>=2.3,<3`, `~2.3` is `>=2.3,<2.4`; a bare version is exact.
fn pep440_of(range: &str) -> String {
    let part = |part: &str| {
        let part = part.trim();
        let numbers = |text: &str| -> Option<Vec<u64>> { text.split('.').map(|n| n.trim().parse().ok()).collect() };
        let below = |text: &str, keep: usize| -> Option<String> {
            let mut numbers = numbers(text)?;
            numbers.truncate(keep.max(1));
            *numbers.last_mut()? += 1;
            let next: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            Some(format!(">={text},<{}", next.join(".")))
        };
        if let Some(version) = part.strip_prefix('^') {
            // The first number that is not zero may not change.
            let fixed = numbers(version).and_then(|n| n.iter().position(|n| *n > 0)).map_or(1, |first| first + 1);
            return below(version.trim(), fixed).unwrap_or_else(|| part.to_owned());
        }
        match part.strip_prefix('~').filter(|rest| !rest.starts_with('=')) {
            Some(version) => below(version.trim(), 2).unwrap_or_else(|| part.to_owned()),
            None if part.starts_with(|c: char| c.is_ascii_digit()) && !part.contains('*') => format!("=={part}"),
            None => part.to_owned(),
        }
    };
    range.split(',').map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::pep440_of;

    #[test]
    fn poetry_ranges_become_pep440() {
        for (given, meant) in [
            ("^2.3", ">=2.3,<3"),
            ("^0.18.1", ">=0.18.1,<0.19"),
            ("^0.0.3", ">=0.0.3,<0.0.4"),
            ("~2.3", ">=2.3,<2.4"),
            ("~2.3.1", ">=2.3.1,<2.4"),
            ("~2", ">=2,<3"),
            ("2.3.0", "==2.3.0"),
            ("2.*", "2.*"),
            (">=3.9,<3.13", ">=3.9,<3.13"),
            ("~=2.3.0", "~=2.3.0"),
            ("*", "*"),
        ] {
            assert_eq!(pep440_of(given), meant, "{given}");
        }
    }
}
