//! What the dynamic loader says of its work (`LD_DEBUG=files,libs`, ld.so(8)): takes its text, gives for each program that
//! was started what it loaded, by which search, and what it looked for in vain.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// By which rule a place is looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchRule {
    /// The file is named by its path.
    Path,
    /// DT_RPATH of this file.
    Rpath(String),
    /// LD_LIBRARY_PATH.
    LibraryPath,
    /// DT_RUNPATH of this file.
    Runpath(String),
    /// `/etc/ld.so.cache`.
    Cache,
    /// The default folders.
    Default,
}

/// A library that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The name or path that was asked for.
    pub name: String,
    /// The file that asked, as the loader names it.
    pub by: String,
    /// Whether it was opened by dlopen(3), not needed by a file's own list.
    pub opened: bool,
    /// The files that were tried, in order.
    pub tried: Vec<(SearchRule, PathBuf)>,
    /// Whether the file came to be initialised: not so where what was opened with it failed.
    pub ready: bool,
}

/// Device and inode of a file, where it is there.
pub type Inode<'f> = &'f dyn Fn(&Path) -> Option<(u64, u64)>;

/// One program that was started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Number of its process.
    pub pid: u32,
    /// The program, as the loader names it.
    pub program: String,
    /// What was loaded, in order; the last file that was tried is the one.
    pub loads: Vec<Request>,
    /// What was asked for and is no file that was loaded.
    pub failures: Vec<Request>,
    /// What the loader says of errors: the file, and what it says.
    pub errors: Vec<(String, String)>,
    /// What it asked for last, where that was in vain and its loader said nothing after that.
    pub last: Option<Request>,
    /// Folders of LD_LIBRARY_PATH, where it was looked into.
    pub library_path: Option<String>,
    started: bool,
    /// Whether the last of the errors is about a symbol that somebody looked for in what is up (dlsym(3)): mostly to see
    /// whether it is there. It counts only where nothing follows.
    asked: bool,
    /// Of the files that are loaded.
    inodes: HashSet<(u64, u64)>,
    open: Option<Request>,
    rule: Option<SearchRule>,
}

impl Request {
    /// The file that was loaded for it.
    pub fn path(&self) -> &Path {
        self.tried.last().map_or(Path::new(&self.name), |(_, path)| path)
    }
}

impl Program {
    /// Ends a request that nothing came of. A file that is loaded already under another name is none.
    fn give_up(&mut self, inode: Inode<'_>) {
        let Some(request) = self.open.take() else { return };
        let is_loaded = inode(request.path()).is_some_and(|inode| self.inodes.contains(&inode));
        let known = self.failures.iter().any(|old| old.name == request.name && old.by == request.by);
        if !is_loaded && !known {
            self.failures.push(request);
        }
    }

    fn line(&mut self, line: &str, inode: Inode<'_>) {
        if self.asked && !line.is_empty() {
            self.errors.pop();
            self.asked = false;
        }
        if let Some(rest) = line.strip_prefix("file=") {
            let Some((name, what)) =
                rest.split_once(" [").and_then(|(name, rest)| Some((name, rest.split_once("];  ")?.1)))
            else {
                return;
            };
            // Whose symbols a file has come to use, which is no request.
            if what.ends_with("(relocation dependency)") {
                return;
            }
            if let Some(by) = what.strip_prefix("needed by ").or_else(|| what.strip_prefix("dynamically loaded by ")) {
                self.give_up(inode);
                self.rule = None;
                let by = by.rsplit_once(" [").map_or(by, |(by, _)| by).to_owned();
                let opened = what.starts_with("dynamically");
                self.open = Some(Request { name: name.to_owned(), by, opened, tried: Vec::new(), ready: false });
            } else if what == "generating link map" {
                let open = self.open.take().filter(|open| open.name == name);
                let request = open.unwrap_or_else(|| Request {
                    name: name.to_owned(),
                    by: self.program.clone(),
                    opened: false,
                    tried: Vec::new(),
                    ready: false,
                });
                self.inodes.extend(inode(request.path()));
                self.loads.push(request);
            }
        } else if let Some(path) = line.strip_prefix("  trying file=") {
            if let Some(open) = &mut self.open {
                open.tried.push((self.rule.clone().unwrap_or(SearchRule::Path), PathBuf::from(path)));
            }
        } else if line.starts_with(" search cache=") {
            self.rule = Some(SearchRule::Cache);
        } else if let Some(rest) = line.strip_prefix(" search path=") {
            let (folders, rule) = rest.split_once("\t\t(").unwrap_or((rest, ""));
            let rule = rule.trim_end_matches(')');
            self.rule = Some(match rule.split_once(" from file ") {
                Some(("RPATH", of)) => SearchRule::Rpath(of.to_owned()),
                Some((_, of)) => SearchRule::Runpath(of.to_owned()),
                None if rule == "LD_LIBRARY_PATH" => {
                    self.library_path.get_or_insert_with(|| plain(folders));
                    SearchRule::LibraryPath
                }
                None => SearchRule::Default,
            });
        } else if let Some(name) = line.strip_prefix("initialize program: ") {
            self.give_up(inode);
            self.started = true;
            if self.program.is_empty() {
                name.clone_into(&mut self.program);
            }
        } else if let Some((file, error)) = line.split_once(": error: ") {
            let error = error.trim_end_matches(" (fatal)").trim_end_matches(" (continued)");
            let is_up = |load: &Request| load.ready && load.path().as_os_str() == file;
            self.asked = error.starts_with("symbol lookup error")
                && (self.started && file == self.program || self.loads.iter().any(is_up));
            self.errors.push((file.to_owned(), error.to_owned()));
        } else if let Some(path) = line.strip_prefix("calling init: ") {
            self.give_up(inode);
            let is_it = |load: &&mut Request| load.path().as_os_str() == path;
            self.loads.iter_mut().rev().find(is_it).into_iter().for_each(|load| load.ready = true);
        } else if line.starts_with("calling ") || line.starts_with("opening ") {
            self.give_up(inode);
        }
    }
}

/// The folders of a path without those that are looked into for newer processors.
fn plain(folders: &str) -> String {
    folders.split(':').filter(|folder| !is_variant(Path::new(folder))).collect::<Vec<_>>().join(":")
}

/// Whether a folder is one of those below a folder of the search that are for certain processors: `glibc-hwcaps/..`, and
/// `tls` and `x86_64` up to glibc 2.36.
pub fn is_variant(folder: &Path) -> bool {
    let parent = folder.parent().and_then(Path::file_name);
    let is = |name: &str| folder.file_name().is_some_and(|last| last == name);
    parent.is_some_and(|parent| parent == "glibc-hwcaps" || parent == "tls") || is("tls") || is("x86_64")
}

/// The programs in one file of the loader's; `inode` says which file a path leads to. A process that starts another program
/// in its place goes on in its file, and so does a copy of it (fork(2)), with a number of its own.
pub fn parse(text: &[u8], inode: Inode<'_>) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut current: HashMap<u32, usize> = HashMap::new();
    let mut loaded: HashMap<usize, HashSet<String>> = HashMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some((pid, line)) = line.split_once(":\t") else { continue };
        let Ok(pid) = pid.trim().parse::<u32>() else { continue };
        let program = line
            .strip_prefix("file=")
            .filter(|rest| !rest.ends_with("(relocation dependency)"))
            .and_then(|rest| rest.split_once("];  needed by "))
            .map(|(_, by)| by.rsplit_once(" [").map_or(by, |(by, _)| by).to_owned());
        let at = match current.get(&pid) {
            Some(at) => *at,
            None => {
                // A copy has what its parent had.
                let copy = programs.last().filter(|one| one.started && program.is_none()).cloned();
                let at = programs.len();
                let known = at.checked_sub(1).and_then(|last| loaded.get(&last).cloned()).filter(|_| copy.is_some());
                loaded.insert(at, known.unwrap_or_default());
                programs.push(Program {
                    pid,
                    failures: Vec::new(),
                    errors: Vec::new(),
                    open: None,
                    asked: false,
                    last: None,
                    ..copy.unwrap_or_default()
                });
                current.insert(pid, at);
                at
            }
        };
        // Whoever needs the first library of a program is the program.
        let is_new = program.as_ref().filter(|by| !loaded.get(&at).is_some_and(|known| known.contains(*by)));
        let at = match is_new {
            Some(by) if programs[at].program.is_empty() => {
                programs[at].program.clone_from(by);
                at
            }
            Some(by) if programs[at].started && programs[at].program != *by => {
                programs[at].give_up(inode);
                programs.push(Program { pid, program: by.clone(), ..Program::default() });
                current.insert(pid, programs.len() - 1);
                loaded.insert(programs.len() - 1, HashSet::new());
                programs.len() - 1
            }
            _ => at,
        };
        let before = programs[at].loads.len();
        programs[at].line(line, inode);
        if let Some(load) = programs[at].loads.get(before) {
            loaded.entry(at).or_default().extend([load.path().display().to_string(), load.name.clone()]);
        }
    }
    for one in &mut programs {
        one.last = one.open.clone();
        one.give_up(inode);
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "     7:\t\n     7:\tfile=libc.so.6 [0];  needed by /bin/sh [0]\n     7:\tfind library=libc.so.6 [0]; searching\n\
        \x20    7:\t search path=/opt/tls/x86_64:/opt\t\t(LD_LIBRARY_PATH)\n     7:\t  trying file=/opt/libc.so.6\n\
        \x20    7:\t search cache=/etc/ld.so.cache\n     7:\t  trying file=/lib/libc.so.6\n     7:\t\n\
        \x20    7:\tfile=libc.so.6 [0];  generating link map\n     7:\tcalling init: /lib/libc.so.6\n     7:\tinitialize program: sh\n\
        \x20    7:\tfile=libm.so.6 [0];  needed by /bin/python [0]\n     7:\t  trying file=/lib/libm.so.6\n\
        \x20    7:\tfile=libm.so.6 [0];  generating link map\n     7:\tfile=libm.so.6 [0];  needed by /lib/libm.so.6 [0] (relocation dependency)\n\
        \x20    7:\tinitialize program: python\n\
        \x20    7:\tfile=libx.so [0];  dynamically loaded by /lib/libm.so.6 [0]\n     7:\tfind library=libx.so [0]; searching\n\
        \x20    7:\t search path=/a:/b\t\t(RUNPATH from file /lib/libm.so.6)\n     7:\t  trying file=/a/libx.so\n     7:\t  trying file=/b/libx.so\n\
        \x20    9:\tfile=/lib/child.so [0];  dynamically loaded by /lib/libm.so.6 [0]\n     9:\tfile=/lib/child.so [0];  generating link map\n\
        \x20    7:\t/bin/python: error: symbol lookup error: undefined symbol: Optional (fatal)\n";

    /// A symbol that was asked for in vain of what is up is an error only where the program ends there.
    #[test]
    fn symbols_that_are_asked_for() {
        let start = "     7:\tfile=libc.so.6 [0];  needed by /bin/python [0]\n     7:\tinitialize program: /bin/python\n\
            \x20    7:\t/bin/python: error: symbol lookup error: undefined symbol: Optional (fatal)\n     7:\t\n";
        let errors = |text: &str| parse(text.as_bytes(), &|_| None).remove(0).errors;
        assert_eq!(errors(start).len(), 1);
        assert_eq!(errors(&format!("{start}     7:\tcalling fini: /bin/python [0]\n")), []);
        let opened = "     7:\tfile=/lib/x.so [0];  generating link map\n\
            \x20    7:\t/lib/x.so: error: symbol lookup error: undefined symbol: Needed (fatal)\n     7:\t\n";
        assert_eq!(errors(&format!("{opened}     7:\tcalling fini: /bin/python [0]\n")).len(), 1);
    }

    #[test]
    fn variants_of_folders() {
        for variant in ["/a/glibc-hwcaps/x86-64-v3", "/a/tls/x86_64/x86_64", "/a/tls", "/a/x86_64", "tls/haswell"] {
            assert!(is_variant(Path::new(variant)), "{variant}");
        }
        for folder in ["/a", "", "/usr/lib/x86_64-linux-gnu", "/opt/tls-1.3/lib"] {
            assert!(!is_variant(Path::new(folder)), "{folder}");
        }
    }

    #[test]
    fn programs_their_loads_and_what_failed() {
        let programs =
            parse(TEXT.as_bytes(), &|path| path.starts_with("/lib").then_some((1, path.as_os_str().len() as u64)));
        let told: Vec<(u32, &str, Vec<&Path>, Vec<&str>)> = programs
            .iter()
            .map(|one| {
                let failures = one.failures.iter().map(|request| request.name.as_str()).collect();
                (one.pid, one.program.as_str(), one.loads.iter().map(Request::path).collect(), failures)
            })
            .collect();
        let path = Path::new;
        assert_eq!(
            told,
            [
                (7, "/bin/sh", vec![path("/lib/libc.so.6")], vec![]),
                (7, "/bin/python", vec![path("/lib/libm.so.6")], vec!["libx.so"]),
                (9, "/bin/python", vec![path("/lib/libm.so.6"), path("/lib/child.so")], vec![]),
            ]
        );
        assert_eq!(programs[0].library_path.as_deref(), Some("/opt"));
        assert_eq!(programs[1].last.as_ref().map(|request| request.name.as_str()), Some("libx.so"));
        let ended = parse(format!("{TEXT}     7:\tcalling fini: /bin/python [0]\n").as_bytes(), &|_| None);
        assert_eq!(ended[1].last, None);
        let failed = &programs[1].failures[0];
        assert!(failed.opened && failed.by == "/lib/libm.so.6");
        assert_eq!(failed.tried[1], (SearchRule::Runpath("/lib/libm.so.6".into()), path("/b/libx.so").to_owned()));
        assert_eq!(
            programs[1].errors,
            [("/bin/python".into(), "symbol lookup error: undefined symbol: Optional".into())]
        );
    }
}
