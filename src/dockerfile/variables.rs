//! Variables of a Dockerfile: `$NAME` and its kin become what the file says that they are.

use super::Variables;

/// A word that grows longer than this by its variables is left as written, in bytes: they can double at each step.
const LONGEST: usize = 64 << 10;

/// Fills in `$NAME`, `${NAME}`, `${NAME:-default}` and `${NAME//text/text}`; what is not set stays as written.
pub(super) fn filled_in(text: &str, variables: &Variables) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, default, length) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((inner, _)) => {
                let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, value)| (name, Some(value)));
                (name, default, inner.len() + 2)
            }
            None => {
                let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
                (&after[..end], None, end)
            }
        };
        let replaced = replaced(name, variables);
        match variables.get(name).map(String::as_str).or(default).or(replaced.as_deref()) {
            Some(value) if out.len() + value.len() > LONGEST => return text.to_owned(),
            Some(value) => out.push_str(value),
            None => {
                out.push('$');
                out.push_str(&after[..length]);
            }
        }
        rest = &after[length..];
    }
    out + rest
}

/// `NAME//text/text` and `NAME/text/text`: the value with all, or the first, of a text replaced. Patterns are not known.
fn replaced(expression: &str, variables: &Variables) -> Option<String> {
    let (name, rest) = expression.split_once('/')?;
    let value = variables.get(name)?;
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
        let variables = Variables::from([("V".to_owned(), "12.1.1".to_owned())]);
        for (text, filled) in [
            ("cu${V//./}", "cu1211"),
            ("cu${V/./}", "cu121.1"),
            ("${V//./-}", "12-1-1"),
            ("${V//\\./}", "1211"),
            ("${V//[.]/}", "${V//[.]/}"),
            ("${W//./}", "${W//./}"),
            ("${W:-a}/$V/$W", "a/12.1.1/$W"),
            ("${V//}", "${V//}"),
        ] {
            assert_eq!(filled_in(text, &variables), filled, "{text}");
        }
    }
}
