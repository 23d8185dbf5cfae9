//! What the shell of a RUN does, as far as the file tells: takes its commands, gives those that may run, with the variables
//! that the ones before them set.

use std::collections::BTreeMap;

use crate::dockerfile::{Instruction, Variables, Word, commands, filled_in, is_variable};

/// Words of the shell after which a command begins.
const LEADING: [&str; 4] = ["then", "else", "do", "{"];

/// Hands each command that may run to `each`, with what the commands before it exported, and `variables`, those of the stage.
///
/// A variable that is set once, outside of any condition, has that value from there on; one that is set otherwise is not
/// known. A branch is passed over where its condition compares known values and does not hold.
pub fn run(
    text: &str,
    run: &Instruction,
    variables: &mut Variables,
    mut each: impl FnMut(&[Word], &Variables, &Variables),
) {
    let times = times_set(&commands(text, run, &Variables::new()));
    // What the shell sets is as written until it is known. They are many, and few are set: none is copied.
    let as_written = |name: &String| (name.clone(), variables.insert(name.clone(), format!("${name}")));
    let before: Vec<(String, Option<String>)> = times.keys().map(as_written).collect();
    let all = commands(text, run, variables);
    for (name, value) in before {
        match value {
            Some(value) => drop(variables.insert(name, value)),
            None => drop(variables.remove(&name)),
        }
    }
    let (mut exported, mut set) = (Variables::new(), Variables::new());
    let mut flow = Flow::default();
    for words in all {
        let words = filled(words, text, &set);
        flow.take(&words);
        if flow.is_elsewhere() {
            continue;
        }
        let own = words.iter().position(|word| !LEADING.contains(&word.text.as_str())).unwrap_or(words.len());
        let is_export = words.get(own).is_some_and(|word| word.text == "export");
        let pairs = || words[own + usize::from(is_export)..].iter().map(|word| assignment(&word.text));
        let sets = pairs().all(|pair| pair.is_some());
        for (name, value) in pairs().flatten() {
            let value = match flow.is_certain() && sets && times.get(name) == Some(&1) && is_known(value) {
                true => set.entry(name.to_owned()).insert_entry(value.to_owned()).get().clone(),
                false if is_export => value.to_owned(),
                false => format!("${name}"),
            };
            // What the stage has set is exported already.
            if is_export || sets && variables.contains_key(name) {
                exported.insert(name.to_owned(), value);
            }
        }
        each(&words, &exported, variables);
    }
}

/// Name and value of `NAME=value`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| is_variable(name))
}

/// How often each variable is set, wherever. What stands before a program (`NAME=value pip ..`) is set for it alone.
fn times_set(commands: &[Vec<Word>]) -> BTreeMap<String, usize> {
    let mut times = BTreeMap::new();
    for words in commands {
        for (name, _) in words.iter().rev().map_while(|word| assignment(&word.text)) {
            *times.entry(name.to_owned()).or_default() += 1;
        }
    }
    times
}

fn is_known(value: &str) -> bool {
    !value.contains(['$', '`'])
}

/// The words with what the shell has set; a variable outside of quotes may stand for several.
fn filled(words: Vec<Word>, text: &str, set: &Variables) -> Vec<Word> {
    if set.is_empty() {
        return words;
    }
    let mut all = Vec::new();
    for word in words {
        let value = filled_in(&word.text, set);
        if text[word.span.clone()].starts_with('$') && value.contains(char::is_whitespace) {
            let one = |part: &str| Word { text: part.to_owned(), span: word.span.clone() };
            all.extend(value.split_whitespace().map(one));
        } else {
            all.push(Word { text: value, span: word.span });
        }
    }
    all
}

/// Where in the branches and loops of a script a command stands.
#[derive(Default)]
struct Flow {
    branches: Vec<Branch>,
    /// Loops and `case` that are open.
    loops: usize,
}

/// An `if` that is open.
#[derive(Default)]
struct Branch {
    /// One of the branches before this one is taken.
    taken: bool,
    /// Whether the condition of this one holds; `None` where that is not known.
    holds: Option<bool>,
    /// The condition is over.
    inside: bool,
}

impl Flow {
    fn take(&mut self, mut words: &[Word]) {
        while let Some((first, rest)) = words.split_first() {
            let branch = self.branches.last_mut();
            match (first.text.as_str(), branch) {
                ("if", _) => self.branches.push(Branch { holds: condition(rest), ..Branch::default() }),
                ("elif", Some(branch)) => *branch = Branch { holds: condition(rest), ..branch.next() },
                ("else", Some(branch)) => *branch = Branch { holds: Some(true), inside: true, ..branch.next() },
                ("then", Some(branch)) => branch.inside = true,
                ("fi", Some(_)) => drop(self.branches.pop()),
                ("for" | "while" | "until" | "case" | "select", _) => self.loops += 1,
                ("done" | "esac", _) => self.loops = self.loops.saturating_sub(1),
                (word, _) if LEADING.contains(&word) => {}
                // A condition of several commands.
                (_, Some(branch)) if !branch.inside => branch.holds = None,
                _ => {}
            }
            words = if LEADING.contains(&first.text.as_str()) { rest } else { &[] };
        }
    }

    /// Whether a command that stands here is not run.
    fn is_elsewhere(&self) -> bool {
        self.branches.iter().any(|branch| branch.inside && (branch.taken || branch.holds == Some(false)))
    }

    /// Whether it is run, as far as branches and loops say.
    fn is_certain(&self) -> bool {
        self.loops == 0 && self.branches.iter().all(|branch| branch.inside && branch.holds == Some(true))
    }
}

impl Branch {
    /// The one after it, of which nothing is known.
    fn next(&self) -> Self {
        Self { taken: self.taken || self.holds == Some(true), ..Self::default() }
    }
}

/// Whether `[ A = B ]`, `[ -n A ]` and their kin hold, where their operands are known.
fn condition(words: &[Word]) -> Option<bool> {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let (patterns, test) = match words.as_slice() {
        ["[", test @ .., "]"] | ["test", test @ ..] => (false, test),
        ["[[", test @ .., "]]"] => (true, test),
        _ => return None,
    };
    if !test.iter().all(|word| is_known(word)) {
        return None;
    }
    match test {
        [_, _, pattern] if patterns && pattern.contains(['*', '?', '[']) => None,
        [a, "=" | "==", b] => Some(a == b),
        [a, "!=", b] => Some(a != b),
        ["-n", a] => Some(!a.is_empty()),
        ["-z", a] => Some(a.is_empty()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands that are seen.
    fn seen(text: &str) -> Vec<String> {
        let mut variables = Variables::from([("V", "12.1"), ("E", "")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        let mut all = Vec::new();
        run(text, &Instruction::run(text), &mut variables, |words, _, _| {
            all.push(words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join("_"));
        });
        assert_eq!(variables.into_iter().collect::<Vec<_>>().len(), 2, "they are as they were");
        all
    }

    #[test]
    fn branches_that_are_not_taken_are_passed_over() {
        for (text, runs) in [
            ("if [ $V = 12.1 ]; then a; else b; fi; c", &["then_a", "fi", "c"][..]),
            ("if [ \"$V\" = \"11.8\" ]; then a; elif [ -z \"$E\" ]; then b; else c; fi", &["then_b", "fi"]),
            ("if [[ $V != 12.* ]]; then a; else b; fi", &["then_a", "else_b", "fi"]),
            ("if [[ $V == 11.8 ]]\nthen\n if x; then a; fi\n b\nfi", &["fi"]),
            ("if [ $V = 1 ] || x; then a; fi", &["then_a", "fi"]),
            ("if test -n \"$E\"; then a; fi", &["fi"]),
            ("if [ $W = 1 ]; then a; else b; fi", &["then_a", "else_b", "fi"]),
            ("if [ $V = 12.1 ]; then a; else if [ $V = 1 ]; then b; fi; c; fi; d", &["then_a", "fi", "d"]),
            ("fi; then a", &["fi", "then_a"]),
        ] {
            let mut all = seen(text);
            all.retain(|command| {
                !command.starts_with("if_") && !command.starts_with("elif_") && command != "then" && command != "x"
            });
            assert_eq!(all, runs, "{text}");
        }
    }

    #[test]
    fn a_variable_has_the_value_that_is_certain() {
        for (text, last) in [
            ("A=1; b $A", "b_1"),
            ("V=2 && b ${V}", "b_2"),
            ("A='x y' && b $A \"$A\"", "b_x_y_x y"),
            ("export A=1; b ${A:-2}", "b_1"),
            ("A=1; A=2; b $A", "b_$A"),
            ("V=1; V=2; b $V", "b_$V"),
            ("if x; then V=2; fi; b $V", "b_$V"),
            ("if [ $V = 12.1 ]; then A=2; fi; b $A", "b_2"),
            ("case x in y) V=2;; esac; b $V", "b_$V"),
            ("for i in 1; do A=$i; done; b $A", "b_$A"),
            ("A=$(x); b $A", "b_$A"),
            ("A=1 b $A", "A=1_b_$A"),
            ("V=1 b $V; b $V", "b_12.1"),
            ("V=12.4.1; b ${V//./} ${V%.*}", "b_1241_${V%.*}"),
            ("b $V", "b_12.1"),
        ] {
            assert_eq!(seen(text).last().map(String::as_str), Some(last), "{text}");
        }
    }
}
