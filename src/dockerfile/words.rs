//! The shell words of an instruction: quotes taken off, variables filled in, a list for each command.

use std::ops::Range;

use super::variables::filled_in;
use super::{Instruction, Variables, Word};

/// The words of each command: split at `&&`, `;`, `|`, brackets of a subshell and line ends. The commands of `sh -c '..'`
/// stand in its place.
pub fn commands(text: &str, instruction: &Instruction, variables: &Variables) -> Vec<Vec<Word>> {
    let escape = instruction.escape;
    let exec = is_exec(&text[instruction.body.clone()], escape);
    let mut all = Vec::new();
    for command in (Reader { text, escape, exec, variables }).read(instruction.body.clone()) {
        match script(&command) {
            Some(script) if ["\"", "'"].iter().any(|quote| text[script.span.clone()].starts_with(quote)) => {
                let inside = script.span.start + 1..script.span.end - 1;
                all.extend(Reader { text, escape, exec: false, variables }.read(inside));
            }
            _ => all.push(command),
        }
    }
    all
}

/// Whether arguments are in the exec form: `["pip", "install"]`, an array of JSON.
fn is_exec(arguments: &str, escape: char) -> bool {
    let arguments = arguments.trim();
    arguments.starts_with('[') && {
        let joined: String =
            arguments.split_inclusive('\n').map(|line| line.trim_end().trim_end_matches(escape)).collect();
        serde_json::from_str::<Vec<String>>(&joined).is_ok()
    }
}

/// The script of `sh -c SCRIPT`, of whatever shell.
fn script(command: &[Word]) -> Option<&Word> {
    const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ash"];
    let shell = command.iter().position(|word| SHELLS.contains(&word.text.rsplit('/').next().unwrap_or_default()))?;
    let is_option = |word: &&Word| word.text.starts_with('-');
    let options = command[shell + 1..].iter().take_while(is_option).count();
    let last = command.get(shell + options).filter(|_| options > 0)?;
    let runs = !last.text.starts_with("--") && last.text.ends_with('c');
    command.get(shell + options + 1).filter(|script| runs && script.span.len() >= 2)
}

/// Reads one text.
struct Reader<'a> {
    text: &'a str,
    escape: char,
    /// Brackets and commas stand between words.
    exec: bool,
    variables: &'a Variables,
}

/// What was read so far.
#[derive(Default)]
struct Read {
    commands: Vec<Vec<Word>>,
    /// The word that is not at its end: its text, and where it begins and ends.
    word: Option<(String, usize, usize)>,
    /// How long all words are, in bytes.
    length: usize,
}

/// When the words of an instruction are longer than this, further ones are left as written, in bytes: each may stand for a long
/// value.
const LONGEST: usize = 1 << 20;

impl Read {
    fn push(&mut self, c: Option<char>, span: Range<usize>) {
        let (text, _, end) = self.word.get_or_insert_with(|| (String::new(), span.start, span.end));
        text.extend(c);
        *end = span.end;
    }

    fn end_word(&mut self, variables: &Variables) {
        if let Some((text, start, end)) = self.word.take() {
            let text = if self.length < LONGEST { filled_in(&text, variables) } else { text };
            self.length += text.len();
            let word = Word { text, span: start..end };
            match self.commands.last_mut() {
                Some(command) => command.push(word),
                None => self.commands.push(vec![word]),
            }
        }
    }
}

impl Reader<'_> {
    fn read(&self, body: Range<usize>) -> Vec<Vec<Word>> {
        let mut read = Read::default();
        let mut quote = None;
        let mut brackets = 0_usize;
        let mut at = body.start;
        let text = &self.text[..body.end];
        while let Some(c) = text[at..].chars().next() {
            let here = at..at + c.len_utf8();
            at = here.end;
            if c == self.escape
                && let Some(next) = next_line(&text[at..])
            {
                at += next;
                continue;
            }
            let next = text[at..].chars().next();
            let bracket = c == '(' && read.word.is_none() || c == ')' && brackets > 0;
            let separates = ";|&\n".contains(c) || bracket;
            match c {
                _ if quote.is_none() && (separates || c.is_whitespace() || self.exec && "[],".contains(c)) => {
                    read.end_word(self.variables);
                    if separates {
                        read.commands.push(Vec::new());
                    }
                    brackets = if bracket && c == ')' { brackets - 1 } else { brackets + usize::from(bracket) };
                }
                '#' if quote.is_none() && read.word.is_none() => at += self.comment(&text[at..]),
                // A quote that is none.
                '\\' if quote != Some('\'') && next.is_some_and(|next| is_escaped(next, quote)) => {
                    let end = at + next.map_or(0, char::len_utf8);
                    read.push(Some('\\').filter(|_| next == Some('\\')), here.start..end);
                    read.push(next, here.start..end);
                    at = end;
                }
                '"' | '\'' if quote == Some(c) => {
                    quote = None;
                    read.push(None, here);
                }
                '"' | '\'' if quote.is_none() => {
                    quote = Some(c);
                    read.push(None, here);
                }
                _ => read.push(Some(c), here),
            }
        }
        read.end_word(self.variables);
        read.commands.retain(|command| !command.is_empty());
        read.commands
    }

    /// How long a comment is. The shell does not see that its line was continued, and takes it for longer than it looks.
    fn comment(&self, text: &str) -> usize {
        let mut length = 0;
        for line in text.split_inclusive('\n') {
            length += line.len();
            if !line.trim_end().ends_with(self.escape) {
                return length - usize::from(line.ends_with('\n'));
            }
        }
        length
    }
}

/// Whether a backslash before a character takes its meaning off: that of quotes, of itself, of a space.
fn is_escaped(next: char, quote: Option<char>) -> bool {
    match quote {
        None => matches!(next, '"' | '\'' | '\\' | ' '),
        Some(_) => matches!(next, '"' | '\\'),
    }
}

/// After the character that continues a line: how far it is to the next line that is neither empty nor a comment; `None`
/// where the line goes on after it.
fn next_line(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n')?;
    let mut length = text.len() - rest.len();
    for line in rest.split_inclusive('\n') {
        let shown = line.trim_start();
        if !shown.is_empty() && !shown.starts_with('#') {
            break;
        }
        length += line.len();
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let all = commands(text, &Instruction::run(text), &Variables::new());
        let shown = |words: &Vec<Word>| words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join("_");
        all.iter().map(shown).collect()
    }

    #[test]
    fn commands_are_split() {
        for (text, commands) in [
            ("a b && c;d|e", &["a_b", "c", "d", "e"][..]),
            ("(a b) && (c; (d))", &["a_b", "c", "d"]),
            ("a $(b c) x=(y)", &["a_$(b_c)_x=(y)"]),
            ("a 'b  c' \"d's\" it\\'s e\\ f g\\\\h \"\\\"i\"", &["a_b  c_d's_it's_e f_g\\\\h_\"i"]),
            ("a # it's; b\nc #d\ne#f", &["a", "c", "e#f"]),
            ("a # b \\\n c\nd", &["a", "d"]),
            ("a \\\n  # it's\n\n  b to\\\ngether \\  \n c", &["a_b_together_c"]),
            ("a \"b \\\n  c\"", &["a_b   c"]),
            ("[\"a\", \"b,c\"]", &["a_b,c"]),
            ("[ \"$A\" = 1 ] && b c,d", &["[_$A_=_1_]", "b_c,d"]),
            ("bash -lc \"a 'b c' && d\" && e", &["a_b c", "d", "e"]),
            ("[\"/bin/sh\", \"-e\", \"-c\", \"a b\"]", &["a_b"]),
            ("sh -c a; bash x.sh -c 'a'; sh", &["sh_-c_a", "bash_x.sh_-c_a", "sh"]),
        ] {
            assert_eq!(read(text), commands, "{text}");
        }
        let text = "a `\n b\\\nc";
        let instruction = Instruction { escape: '`', ..Instruction::run(text) };
        assert_eq!(commands(text, &instruction, &Variables::new()).len(), 2);
    }

    #[test]
    fn words_have_places() {
        let text = "x \"a b\" sh -c 'c d' e\\\n f";
        let all = commands(text, &Instruction::run(text), &Variables::new());
        let spans: Vec<&str> = all.iter().flatten().map(|word| &text[word.span.clone()]).collect();
        assert_eq!(spans, ["c", "d"]);
        let text = "x \"a b\" e\\\n f";
        let all = commands(text, &Instruction::run(text), &Variables::new());
        let spans: Vec<&str> = all.iter().flatten().map(|word| &text[word.span.clone()]).collect();
        assert_eq!(spans, ["x", "\"a b\"", "e", "f"]);
    }
}
