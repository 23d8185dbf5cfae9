//! The header of a file that gpulock wrote: takes the file's text, gives the command, lock, target and template that it names.
//!
//! A header that was damaged is still one: the file is gpulock's, and is found out.

const MARK: &str = "Written by `gpulock ";
const LOCK_LINE: &str = "Lock: ";
const HASH: &str = "sha256:";
const TARGET_LINE: &str = "Target: ";
/// The same in a Dockerfile, where the stack follows.
const DOCKERFILE_TARGET_LINE: &str = "Target ";
const TEMPLATE_LINE: &str = "Template: ";
const OPTIONS_LINE: &str = "Options: ";
/// The commands that write such files.
const COMMANDS: [&str; 2] = ["dockerfile", "export "];
/// What lines of comment begin with.
const COMMENTS: [&str; 2] = ["# ", "// "];
/// A header stands in the first lines, after directives that only count there.
const HEADER_LINES: usize = 10;

/// A file that gpulock wrote, as its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'t> {
    /// Its first line.
    pub line: &'t str,
    /// The command that wrote it: `export requirements`; empty where that line is gone.
    pub command: &'t str,
    /// The lock that it was written for, by its hash; absent where that line is gone.
    pub lock: Option<&'t str>,
    pub(super) target: Option<&'t str>,
    pub(super) template: Option<&'t str>,
    pub(super) options: Option<&'t str>,
}

/// The header of a text; `None` where it has none, and was not written by gpulock.
pub fn header(text: &str) -> Option<Header<'_>> {
    let mut lines = text.lines().take(HEADER_LINES).skip_while(|line| !is_of_header(line));
    let first = lines.next()?;
    let comment = COMMENTS.into_iter().find(|comment| first.starts_with(comment))?;
    let command = command(uncommented(first)?).unwrap_or_default();
    // A line that was damaged does not hide those below it.
    let rest: Vec<&str> =
        std::iter::once(first).chain(lines).map_while(|line| line.strip_prefix(comment)).take(5).collect();
    let line = |prefix: &str| rest.iter().find_map(|line| line.strip_prefix(prefix));
    Some(Header {
        line: first,
        command,
        lock: line(LOCK_LINE).filter(|hash| is_hash(hash)),
        target: line(TARGET_LINE)
            .and_then(|text| text.rsplit_once(" ("))
            .or_else(|| line(DOCKERFILE_TARGET_LINE).and_then(|text| text.rsplit_once(": torch ")))
            .map(|(name, _)| name),
        template: line(TEMPLATE_LINE),
        options: line(OPTIONS_LINE),
    })
}

fn uncommented(line: &str) -> Option<&str> {
    COMMENTS.into_iter().find_map(|comment| line.strip_prefix(comment))
}

/// Whether a line is the first of a header, or a later one where that is gone.
fn is_of_header(line: &str) -> bool {
    let Some(text) = uncommented(line) else { return false };
    let hash = text.strip_prefix(LOCK_LINE).or_else(|| text.strip_prefix(TEMPLATE_LINE));
    command(text).is_some() || hash.is_some_and(is_hash)
}

fn command(text: &str) -> Option<&str> {
    let command = text.strip_prefix(MARK)?.split('`').next()?;
    COMMANDS.iter().any(|one| command.starts_with(one)).then_some(command)
}

fn is_hash(text: &str) -> bool {
    let hex = text.strip_prefix(HASH).unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}
