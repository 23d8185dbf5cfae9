//! Variables of a Dockerfile: `$NAME` and its kin become what the file says that they are.

use super::Variables;

/// A word that grows longer than this by its variables is left as written, in bytes: they can double at each step.
const LONGEST: usize = 64 << 10;

/// An expansion that is longer than this is left as written, in bytes.
const LONGEST_EXPANSION: usize = 1 << 10;

/// One that has more of them inside each other as well.
const DEEPEST: usize = 8;

/// Fills in `$NAME`, `${NAME}`, `${NAME:-text}`, `${NAME:+text}` and their kin, and `${NAME//text/text}`; what is not set
/// stays as written.
pub(crate) fn filled_in(text: &str, variables: &Variables) -> String {
    filled(text, variables, 0)
}

fn filled(text: &str, variables: &Variables, depth: usize) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (value, length) = match after.strip_prefix('{').and_then(inner) {
            Some(inner) if depth < DEEPEST => (expanded(inner, variables, depth), inner.len() + 2),
            Some(inner) => (None, inner.len() + 2),
            None => {
                let end = after.find(|c: char| !is_of_name(c)).unwrap_or(after.len());
                (variables.get(&after[..end]).cloned(), end)
            }
        };
        match value {
            Some(value) if out.len() + value.len() > LONGEST => return text.to_owned(),
            Some(value) => out.push_str(&value),
            None => {
                out.push('$');
                out.push_str(&after[..length]);
            }
        }
        rest = &after[length..];
    }
    out + rest
}

/// What stands between the brackets of an expansion, whose own expansions may have brackets too.
fn inner(text: &str) -> Option<&str> {
    let mut open = 0_usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate().take(LONGEST_EXPANSION) {
        match byte {
            b'{' if at > 0 && bytes[at - 1] == b'$' => open += 1,
            b'}' if open == 0 => return Some(&text[..at]),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// What an expansion stands for: with a colon, an empty value is as none. What is not set may be set by who builds, so
/// `${NAME:+text}` of it stays as written.
fn expanded(inner: &str, variables: &Variables, depth: usize) -> Option<String> {
    let (name, operation) = inner.split_at(inner.find(|c: char| !is_of_name(c)).unwrap_or(inner.len()));
    let value = variables.get(name);
    let (given, operation) = match operation.strip_prefix(':') {
        Some(operation) => (value.filter(|value| !value.is_empty()), operation),
        None => (value, operation),
    };
    let text = |word: &str| filled(word, variables, depth + 1);
    if let Some(word) = operation.strip_prefix('-') {
        Some(given.cloned().unwrap_or_else(|| text(word)))
    } else if let Some(word) = operation.strip_prefix('+') {
        value.map(|_| if given.is_some() { text(word) } else { String::new() })
    } else if operation.is_empty() || operation.starts_with('?') {
        given.cloned()
    } else {
        replaced(inner, variables)
    }
}

/// Whether a text is the name of an environment variable, as the shell takes it.
pub fn is_variable(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_name) && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `NAME//text/text` and `NAME/text/text`: the value with all, or the first, of a text replaced. Patterns are not known.
fn replaced(expression: &str, variables: &Variables) -> Option<String> {
    let (name, rest) = expression.split_once('/')?;
    // A value that is not known has no parts that are.
    let value = variables.get(name).filter(|value| !value.contains('$'))?;
    let (rest, most) = rest.strip_prefix('/').map_or((rest, 1), |rest| (rest, value.len()));
    let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
    let from = from.strip_prefix('\\').unwrap_or(from);
    (!from.is_empty() && !from.contains(['*', '?', '[', '\\'])).then(|| value.replacen(from, to, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let variables = Variables::from([("V", "12.1.1"), ("E", "")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        for (text, filled) in [
            ("cu${V//./}", "cu1211"),
            ("cu${V/./}", "cu121.1"),
            ("${V//./-}", "12-1-1"),
            ("${V//\\./}", "1211"),
            ("${V//[.]/}", "${V//[.]/}"),
            ("${W//./}", "${W//./}"),
            ("${W:-a}/$V/$W", "a/12.1.1/$W"),
            ("${V//}", "${V//}"),
            ("${W:-$V}/${W-${V}}/${V-a}/${V:-a}", "12.1.1/12.1.1/12.1.1/12.1.1"),
            ("${W:-${X:-${V//./}}-b}", "1211-b"),
            ("${E:-a}/${E-a}/$E/${E}", "a///"),
            ("${V:+a}/${V+$V-a}/${E:+a}/${E+a}/${W:+a}", "a/12.1.1-a//a/${W:+a}"),
            ("${V:?no}/${V?}/${W:?no}", "12.1.1/12.1.1/${W:?no}"),
            ("${W:-${V}", "${W:-12.1.1"),
        ] {
            assert_eq!(filled_in(text, &variables), filled, "{text}");
        }
    }

    #[test]
    fn depth_and_length_have_an_end() {
        let deep = format!("{}$V{}", "${W:-".repeat(100), "}".repeat(100));
        assert!(filled_in(&deep, &Variables::new()).contains("${W:-"));
        let long = format!("${{W:-{}}}", "a".repeat(LONGEST_EXPANSION));
        assert_eq!(filled_in(&long, &Variables::new()), long);
    }
}
