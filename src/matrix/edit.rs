//! Adds rows to files of the matrix: takes a file's text, gives it with new tables or values, all else as it was.

use serde::de::DeserializeOwned;
use toml_edit::{Document, Item, Table, Value};

/// Lines of an array are no longer than this.
const WIDTH: usize = 110;

/// A table to write: its header and its keys in their order.
#[derive(Debug, Clone, Default)]
pub struct Block {
    text: String,
}

impl Block {
    /// The keys at the top of a file.
    pub fn top() -> Self {
        Self::default()
    }

    /// `[[release]]` after `blank` empty lines.
    pub fn row(header: &str, blank: usize) -> Self {
        Self { text: format!("{}[[{header}]]\n", "\n".repeat(blank)) }
    }

    /// A string.
    pub fn string(mut self, key: &str, value: &str) -> Self {
        self.text.push_str(&format!("{key} = {}\n", quoted(value)));
        self
    }

    /// A string, if there is one.
    pub fn optional(self, key: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.string(key, &value.to_string()),
            None => self,
        }
    }

    /// A number.
    pub fn number(mut self, key: &str, value: u32) -> Self {
        self.text.push_str(&format!("{key} = {value}\n"));
        self
    }

    /// `true` or `false`, if known.
    pub fn flag(mut self, key: &str, value: Option<bool>) -> Self {
        if let Some(value) = value {
            self.text.push_str(&format!("{key} = {value}\n"));
        }
        self
    }

    /// A list of strings.
    pub fn list<T: ToString>(mut self, key: &str, values: &[T]) -> Self {
        self.text.push_str(&format!("{key} = {}\n", list(key, values)));
        self
    }

    /// Another table after this one.
    pub fn and(mut self, other: &Self) -> Self {
        self.text.push_str(&other.text);
        self
    }

    /// As text; ends with a line feed.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn quoted(text: &str) -> String {
    // The library picks a literal string where there is a quote; the files of the matrix have basic strings only.
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A list on one line, or on several when that is too long.
fn list<T: ToString>(key: &str, values: &[T]) -> String {
    let entries: Vec<String> = values.iter().map(|value| quoted(&value.to_string())).collect();
    let line = format!("[{}]", entries.join(", "));
    if key.len() + " = ".len() + line.len() <= WIDTH {
        return line;
    }
    let mut lines = vec![String::from("   ")];
    for entry in entries {
        if let Some(last) = lines.last_mut()
            && last.len() + 2 + entry.len() <= WIDTH
        {
            last.push_str(&format!(" {entry},"));
        } else {
            lines.push(format!("    {entry},"));
        }
    }
    format!("[\n{}\n]", lines.join("\n"))
}

/// Puts `block` before the first row of `[[array]]` of which `later` says true of the string at `key`, else at the end.
pub fn insert_row(text: &str, array: &str, key: &str, later: impl Fn(&str) -> bool, block: &Block) -> String {
    let document = Document::parse(text).ok();
    let rows = document.as_ref().and_then(|document| document.get(array)?.as_array_of_tables());
    let next = rows.and_then(|rows| rows.iter().find(|row| row.get(key).and_then(Item::as_str).is_some_and(&later)));
    match next.and_then(Table::span) {
        Some(span) => {
            let at = above_comments(text, span.start);
            // The blank lines that stand before the next row go between the two.
            let blank = block.text.len() - block.text.trim_start_matches('\n').len();
            format!("{}{}{}{}", &text[..at], block.text.trim_start_matches('\n'), "\n".repeat(blank), &text[at..])
        }
        None => format!("{}\n{}", text.trim_end(), block.text),
    }
}

/// Puts `block` after all that belongs to row `row` of `[[array]]`.
pub fn append_to_row(text: &str, array: &str, row: usize, block: &Block) -> String {
    let document = Document::parse(text).ok();
    let rows = document.as_ref().and_then(|document| document.get(array)?.as_array_of_tables());
    match rows.and_then(|rows| rows.get(row + 1)).and_then(Table::span) {
        Some(next) => {
            let at = above_comments(text, next.start);
            let blank = text[..at].len() - text[..at].trim_end().len();
            let (before, gap) = text[..at].split_at(at - blank);
            format!("{before}\n{}{}{}", block.text, gap.strip_prefix('\n').unwrap_or(gap), &text[at..])
        }
        None => format!("{}\n{}", text.trim_end(), block.text),
    }
}

/// A text as data; `None` when it does not have that form.
pub fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    toml_edit::de::from_str(text).ok()
}

/// Replaces the list at `key` of row `row` of `[[array]]`; `None` if there is none.
pub fn set_list<T: ToString>(text: &str, array: &str, row: usize, key: &str, values: &[T]) -> Option<String> {
    replace(text, array, row, key, Value::is_array, &list(key, values))
}

/// Replaces the string at `key` of row `row` of `[[array]]`; `None` if there is none.
pub fn set_string(text: &str, array: &str, row: usize, key: &str, value: &str) -> Option<String> {
    replace(text, array, row, key, Value::is_str, &quoted(value))
}

fn replace(text: &str, array: &str, row: usize, key: &str, kind: impl Fn(&Value) -> bool, new: &str) -> Option<String> {
    let document = Document::parse(text).ok()?;
    let rows = document.get(array)?.as_array_of_tables()?;
    let span = rows.get(row)?.get(key).and_then(Item::as_value).filter(|value| kind(value))?.span()?;
    Some(format!("{}{new}{}", &text[..span.start], &text[span.end..]))
}

/// The start of the comment lines right above `at`, which begins a line.
fn above_comments(text: &str, at: usize) -> usize {
    let mut start = at;
    for line in text[..at].split_inclusive('\n').rev() {
        if !line.starts_with('#') {
            break;
        }
        start -= line.len();
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# top\na = \"1\" # kept\n\n\n[[release]]\nversion = \"1\"\n\n[[release.build]]\nx = 1\n\n\n\
        # of two\n[[release]]\nversion = \"2\"\nlist = [\"b\"] # odd\n";

    #[test]
    fn rows_go_where_they_belong() {
        let block = Block::row("release", 2).string("version", "1.5");
        let text = insert_row(TEXT, "release", "version", |version| version > "1.5", &block);
        let new = "x = 1\n\n\n[[release]]\nversion = \"1.5\"\n\n\n# of two\n[[release]]\nversion = \"2\"";
        assert!(text.contains(new), "{text}");
        let block = Block::row("release", 2).string("version", "3");
        let text = insert_row(TEXT, "release", "version", |version| version > "3", &block);
        assert!(text.starts_with(TEXT) && text.ends_with("# odd\n\n\n[[release]]\nversion = \"3\"\n"), "{text}");
        let build = Block::row("release.build", 1).number("x", 2);
        let text = append_to_row(TEXT, "release", 0, &build);
        assert!(text.contains("x = 1\n\n[[release.build]]\nx = 2\n\n\n# of two\n[[release]]"), "{text}");
        let text = append_to_row(TEXT, "release", 1, &build);
        assert!(text.ends_with("# odd\n\n[[release.build]]\nx = 2\n"), "{text}");
    }

    #[test]
    fn values_are_written_as_the_files_have_them() {
        let text = set_list(TEXT, "release", 1, "list", &["a", "b"]).unwrap();
        assert!(text.ends_with("list = [\"a\", \"b\"] # odd\n"));
        assert!(
            set_string(TEXT, "release", 1, "version", "2.1")
                .unwrap()
                .contains("version = \"2.1\"\nlist = [\"b\"] # odd\n")
        );
        assert!(set_list(TEXT, "release", 0, "list", &["a"]).is_none());
        let long: Vec<String> = (0..30).map(|i| format!("sm_{i}")).collect();
        let block = Block::top().list("code", &long).string("note", "a \"b\" \\ c");
        let read: toml_edit::DocumentMut = block.text().parse().unwrap();
        assert_eq!(read["code"].as_array().unwrap().len(), 30);
        assert!(block.text().lines().all(|line| line.len() <= WIDTH));
        assert_eq!(read["note"].as_str(), Some("a \"b\" \\ c"));
    }
}
