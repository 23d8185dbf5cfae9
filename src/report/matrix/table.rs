//! Text tables: columns as wide as their widest cell, cells of the last one wrapped at a line's end.

/// Two blanks between columns.
const GAP: usize = 2;
/// A line is no longer than this where its last cell can be wrapped.
const WIDTH: usize = 100;

/// Rows below a header; a row shorter than the header leaves the rest blank.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()] }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Blanks the first cell of rows that repeat the one above.
    pub(super) fn group(&mut self) {
        let mut last = String::new();
        for row in &mut self.rows {
            let Some(first) = row.first_mut() else { continue };
            if *first == last {
                first.clear();
            } else {
                last.clone_from(first);
            }
        }
    }

    /// The lines; ends with a line feed.
    pub(super) fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + GAP).sum();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                if column + 1 == columns {
                    line.push_str(&wrapped(cell, before));
                } else {
                    let cell_width = cell.chars().count();
                    line.push_str(cell);
                    line.extend(std::iter::repeat_n(' ', widths[column] + GAP - cell_width));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// `cell` broken at blanks so that lines that begin `before` characters in end by [`WIDTH`].
fn wrapped(cell: &str, before: usize) -> String {
    let room = WIDTH.saturating_sub(before).max(30);
    let mut text = String::new();
    let mut used = 0;
    for word in cell.split(' ') {
        let width = word.chars().count();
        if used > 0 && used + 1 + width > room {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', before));
            used = 0;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += width;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_wraps() {
        let mut table = Table::new(&["a", "names"]);
        table.row(["x".into(), "word ".repeat(30).trim().into()]);
        table.row(["x".into(), "short".into()]);
        table.group();
        let text = table.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "a  names");
        assert!(lines[1].starts_with("x  word word") && lines[1].len() <= WIDTH);
        assert!(lines[2].starts_with("   word"));
        assert_eq!(lines[3], "   short");
    }
}
