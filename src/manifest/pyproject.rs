//! Edits a `pyproject.toml` so that `uv lock` arrives at given versions; comments, order and all else stay.
//!
//! What is written is marked, so that it can be written anew. Of what the user wrote only one thing gives way: another
//! index for a locked package, which would lead elsewhere than the lock.

use std::collections::BTreeMap;

use toml_edit::{Array, ArrayOfTables, InlineTable, Item, RawString, Table, TableLike, Value, value};

use super::reader::parse_toml;
use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::python::PackageName;
use crate::version::Pep440;

/// What `uv lock` is to arrive at.
#[derive(Debug, Clone, Default)]
pub struct UvPins {
    /// What the project itself asks for, with extras: `torch`, `accelerate[test]`.
    pub dependencies: BTreeMap<PackageName, String>,
    /// The version of every package.
    pub constraints: BTreeMap<PackageName, Pep440>,
    /// The index of every package by name; `None` for the default index.
    pub sources: BTreeMap<PackageName, Option<String>>,
    /// Name and URL of indexes; those that no package comes from are not written.
    pub indexes: BTreeMap<String, String>,
    /// An environment marker: for what machines and interpreters.
    pub environment: String,
    /// Written where the project says none.
    pub requires_python: String,
}

/// Marks what is written anew each time.
const MARK: &str = "# Locked by gpulock";

/// Whether a text has pins of gpulock.
pub fn is_pinned(text: &str) -> bool {
    text.contains(MARK)
}

/// `text` with `pins`; `name` is what messages call it, `project` the project's name where the text has no `[project]`.
///
/// # Errors
/// Text that is not TOML, or where something else stands in the place of a table or array; a project of Poetry, which
/// uv does not read.
pub fn pin(text: &str, name: &str, project: &str, pins: &UvPins) -> Result<String, Failure> {
    let mut document = parse_toml(SourceText::new(name, text))?.into_mut();
    let editor = Editor { name };
    let root = document.as_table_mut();
    let poetry = root.get("tool").and_then(Item::as_table_like).is_some_and(|tool| tool.contains_key("poetry"));
    if poetry && !root.contains_key("project") {
        let message = format!("{name} is a project of Poetry without [project], which uv does not read");
        let seen = Evidence::observed(name, "[tool.poetry] but no [project]");
        let fix = "move name, version and dependencies to [project], or use `gpulock export constraints`";
        return Err(Failure::unanswerable(Diagnostic::error("no-project", message, seen).fix(fix)));
    }
    let begun = !root.contains_key("project");
    let table = editor.table(root, "project", "[project]")?;
    if begun {
        table.insert("name", value(project.parse::<PackageName>().map_or("project".into(), |name| name.to_string())));
        table.insert("version", value("0.1.0"));
    }
    if !table.contains_key("requires-python") {
        table.insert("requires-python", value(pins.requires_python.as_str()));
    }
    editor.dependencies(table, pins)?;
    let tool = editor.table(root, "tool", "[tool]")?;
    let uv = editor.table(tool, "uv", "[tool.uv]")?;
    editor.environments(uv, pins)?;
    let constraints = editor.array(uv, "constraint-dependencies", "[tool.uv]")?;
    replace_marked(constraints, pins.constraints.iter().map(|(name, version)| format!("{name}=={version}")));
    editor.sources(uv, pins)?;
    editor.indexes(uv, pins)?;
    Ok(document.to_string())
}

/// Finds and makes the places to edit.
struct Editor<'a> {
    name: &'a str,
}

impl Editor<'_> {
    fn refuse(&self, what: &str, must: &str, is: &Item) -> Failure {
        let message = format!("{what} in {} must be {must}", self.name);
        let seen = Evidence::observed(self.name, format!("{what} is of type {}", is.type_name()));
        Failure::unanswerable(Diagnostic::error("wrong-type", message, seen).fix("correct it, and export again"))
    }

    /// The table at `key`, made when there is none.
    fn table<'t>(
        &self,
        parent: &'t mut dyn TableLike,
        key: &str,
        shown: &str,
    ) -> Result<&'t mut dyn TableLike, Failure> {
        if !parent.contains_key(key) {
            let mut table = Table::new();
            // Only `[tool.uv]` is to stand there, not `[tool]`.
            table.set_implicit(key == "tool");
            parent.insert(key, Item::Table(table));
        }
        let item = parent.entry(key).or_insert_with(|| Item::Table(Table::new()));
        let problem = self.refuse(shown, "a table", item);
        item.as_table_like_mut().ok_or(problem)
    }

    /// The array at `key`, made when there is none.
    fn array<'t>(&self, parent: &'t mut dyn TableLike, key: &str, shown: &str) -> Result<&'t mut Array, Failure> {
        let item = parent.entry(key).or_insert_with(|| value(Array::new()));
        let problem = self.refuse(&format!("`{key}` of {shown}"), "an array", item);
        item.as_array_mut().ok_or(problem)
    }

    /// Adds what the project does not ask for so far.
    fn dependencies(&self, project: &mut dyn TableLike, pins: &UvPins) -> Result<(), Failure> {
        let dynamic = project.get("dynamic").and_then(Item::as_array);
        if dynamic.is_some_and(|names| names.iter().any(|name| name.as_str() == Some("dependencies"))) {
            return Ok(());
        }
        let array = self.array(project, "dependencies", "[project]")?;
        let asked: Vec<PackageName> = array.iter().filter_map(Value::as_str).filter_map(leading_name).collect();
        let missing = pins.dependencies.iter().filter(|(name, _)| !asked.contains(name));
        append(array, missing.map(|(_, requirement)| requirement.clone()), None);
        Ok(())
    }

    /// Sets the environment, unless the user has chosen environments.
    fn environments(&self, uv: &mut dyn TableLike, pins: &UvPins) -> Result<(), Failure> {
        let array = self.array(uv, "environments", "[tool.uv]")?;
        if array.is_empty() || array.iter().any(is_marked) {
            replace_marked(array, [pins.environment.clone()].into_iter());
        }
        Ok(())
    }

    fn sources(&self, uv: &mut dyn TableLike, pins: &UvPins) -> Result<(), Failure> {
        if !uv.contains_key("sources") && pins.sources.values().all(Option::is_none) {
            return Ok(());
        }
        let sources = self.table(uv, "sources", "[tool.uv.sources]")?;
        let written: Vec<(String, PackageName)> =
            sources.iter().filter_map(|(key, _)| Some((key.to_owned(), key.parse().ok()?))).collect();
        for (package, index) in &pins.sources {
            let key = written.iter().find(|(_, name)| name == package).map(|(key, _)| key.as_str());
            match (index, key) {
                (Some(index), key) => {
                    let key = key.unwrap_or(package.as_str());
                    let same = sources.get(key).is_some_and(|item| index_name(item) == Some(index));
                    if !same {
                        sources.insert(key, value(InlineTable::from_iter([("index", index.as_str())])));
                    }
                }
                // An index of an earlier lock, or of the user, would lead elsewhere than the lock.
                (None, Some(key)) if sources.get(key).is_some_and(from_index) => drop(sources.remove(key)),
                (None, _) => {}
            }
        }
        Ok(())
    }

    fn indexes(&self, uv: &mut dyn TableLike, pins: &UvPins) -> Result<(), Failure> {
        for (name, url) in &pins.indexes {
            if !pins.sources.values().any(|source| source.as_deref() == Some(name)) {
                continue;
            }
            let item = uv.entry("index").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
            let problem = self.refuse("`index` of [tool.uv]", "an array of tables", item);
            let named = |table: &dyn TableLike| table.get("name").and_then(Item::as_str) == Some(name);
            if let Some(tables) = item.as_array_of_tables_mut() {
                if let Some(table) = tables.iter_mut().find(|table| named(*table)) {
                    set(table, "url", url);
                    continue;
                }
                let mut table = Table::new();
                table.extend([("name", value(name)), ("url", value(url)), ("explicit", value(true))]);
                tables.push(table);
            } else if let Some(array) = item.as_array_mut() {
                let found = array.iter_mut().filter_map(Value::as_inline_table_mut).find(|table| named(*table));
                if let Some(table) = found {
                    set(table, "url", url);
                    continue;
                }
                let mut table = InlineTable::new();
                table.extend([("name", Value::from(name)), ("url", url.into()), ("explicit", true.into())]);
                array.push(table);
            } else {
                return Err(problem);
            }
        }
        Ok(())
    }
}

/// Sets a string, and leaves it with its comments when it is that already.
fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    if table.get(key).and_then(Item::as_str) != Some(text) {
        table.insert(key, value(text));
    }
}

/// The index of a source `{ index = ".." }`.
fn index_name(source: &Item) -> Option<&str> {
    source.as_table_like()?.get("index")?.as_str()
}

/// Whether a source names an index, in one of its alternatives.
fn from_index(source: &Item) -> bool {
    let alternative = |value: &Value| value.as_inline_table().is_some_and(|table| table.contains_key("index"));
    index_name(source).is_some() || source.as_array().is_some_and(|array| array.iter().any(alternative))
}

/// The package that a requirement begins with.
fn leading_name(requirement: &str) -> Option<PackageName> {
    let name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let trimmed = requirement.trim_start();
    trimmed[..trimmed.find(|c| !name(c)).unwrap_or(trimmed.len())].parse().ok()
}

/// What stands before an entry: spaces and comments.
fn prefix(entry: &Value) -> &str {
    entry.decor().prefix().and_then(RawString::as_str).unwrap_or_default()
}

fn is_marked(entry: &Value) -> bool {
    prefix(entry).contains(MARK)
}

/// Replaces the entries below the mark, to the end of the array.
fn replace_marked(array: &mut Array, entries: impl Iterator<Item = String>) {
    let marked = array.iter().position(is_marked);
    if let Some(first) = marked {
        // What stands before the mark belongs to the entry above.
        let before = array
            .get(first)
            .map(prefix)
            .unwrap_or_default()
            .split(MARK)
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_owned();
        while array.len() > first {
            array.remove(array.len() - 1);
        }
        array.set_trailing(format!("{before}\n"));
    }
    append(array, entries, Some(&format!("{MARK}; `gpulock export uv` writes all below anew.")));
}

/// Adds entries in the manner of the array: one a line where its own are, or where there are none; `comment` goes above.
fn append(array: &mut Array, entries: impl Iterator<Item = String>, comment: Option<&str>) {
    let entries: Vec<String> = entries.collect();
    if entries.is_empty() {
        return;
    }
    let text = |raw: Option<&RawString>| raw.and_then(RawString::as_str).unwrap_or_default().to_owned();
    let prefixes: Vec<String> = array.iter().map(|entry| prefix(entry).to_owned()).collect();
    let one_line = comment.is_none() && !prefixes.is_empty() && prefixes.iter().all(|prefix| !prefix.contains('\n'));
    if one_line {
        array.extend(entries);
        return;
    }
    let indent = prefixes.iter().rev().find_map(|prefix| prefix.rsplit_once('\n')).map_or("    ", |(_, indent)| indent);
    let indent = indent.to_owned();
    // A comment after the last entry stands in what follows it, and has to stay on its line.
    let mut tail = text(Some(array.trailing()));
    if let Some(last) = array.len().checked_sub(1).and_then(|last| array.get_mut(last)) {
        tail = text(last.decor().suffix()) + &tail;
        last.decor_mut().set_suffix("");
    }
    let mut before = tail.trim_end().to_owned();
    before.extend(comment.iter().flat_map(|comment| ["\n", &indent, comment]));
    for entry in entries {
        let mut entry = Value::from(entry);
        entry.decor_mut().set_prefix(format!("{before}\n{indent}"));
        array.push_formatted(entry);
        before.clear();
    }
    array.set_trailing("\n");
    array.set_trailing_comma(true);
}
