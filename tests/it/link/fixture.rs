//! ELF files made for a test: what ld.so needs to load them and nothing else. They run nothing; they are listed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A shared object, or with `interpreter` a program.
#[derive(Debug, Clone, Default)]
pub struct Elf {
    pub soname: Option<String>,
    pub needed: Vec<String>,
    pub rpath: Option<String>,
    pub runpath: Option<String>,
    pub no_default_search: bool,
    /// `name`, `name@VERSION` (hidden) or `name@@VERSION`.
    pub defines: Vec<String>,
    /// `name`, or `name@VERSION/library`; `?` at the end makes it weak.
    pub asks: Vec<String>,
    /// `VERSION/library` without a symbol; `?` at the end makes it weak.
    pub versions: Vec<String>,
    /// As in the ELF header; 62 is x86-64.
    pub machine: Option<u16>,
    pub interpreter: bool,
    /// What defined symbols point to: code or data, by name.
    pub contents: BTreeMap<String, Vec<u8>>,
    pub sections: Vec<(&'static str, Vec<u8>)>,
    /// Flags of PT_GNU_STACK; 6, which is plain, unless said.
    pub stack: Option<u32>,
}

/// Text with all strings, each once.
#[derive(Default)]
struct Strings {
    bytes: Vec<u8>,
    known: BTreeMap<String, u32>,
}

impl Strings {
    fn add(&mut self, text: &str) -> u32 {
        if self.bytes.is_empty() {
            self.bytes.push(0);
        }
        let end = self.bytes.len() as u32;
        *self.known.entry(text.into()).or_insert_with(|| {
            self.bytes.extend(text.bytes().chain([0]));
            end
        })
    }
}

fn sysv_hash(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(byte.into());
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// The little-endian bytes of numbers of several widths.
macro_rules! bytes {
    ($($number:expr),* $(,)?) => {{
        let mut bytes: Vec<u8> = Vec::new();
        $(bytes.extend($number.to_le_bytes());)*
        bytes
    }};
}

const HEADERS: u64 = 64 + 4 * 56;

impl Elf {
    pub fn library(soname: &str) -> Self {
        Self { soname: Some(soname.into()), ..Self::default() }
    }

    pub fn program() -> Self {
        Self { interpreter: true, ..Self::default() }
    }

    pub fn needed(mut self, names: &[&str]) -> Self {
        self.needed.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub fn rpath(mut self, path: &str) -> Self {
        self.rpath = Some(path.into());
        self
    }

    pub fn runpath(mut self, path: &str) -> Self {
        self.runpath = Some(path.into());
        self
    }

    pub fn defines(mut self, names: &[&str]) -> Self {
        self.defines.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub fn asks(mut self, names: &[&str]) -> Self {
        self.asks.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    pub fn versions(mut self, names: &[&str]) -> Self {
        self.versions.extend(names.iter().map(|name| (*name).to_owned()));
        self
    }

    /// Defines a symbol, in a version if it has one, that points to these bytes.
    pub fn holds(mut self, symbol: &str, bytes: Vec<u8>) -> Self {
        self.contents.insert(symbol.into(), bytes);
        self.defines(&[symbol])
    }

    pub fn section(mut self, name: &'static str, bytes: Vec<u8>) -> Self {
        self.sections.push((name, bytes));
        self
    }

    pub fn write(&self, path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, self.bytes()).unwrap();
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut strings = Strings::default();
        strings.add("");
        let mut dynamic: Vec<(u64, u64)> = Vec::new();
        for needed in &self.needed {
            dynamic.push((1, strings.add(needed).into()));
        }
        for (tag, text) in [(14, &self.soname), (15, &self.rpath), (29, &self.runpath)] {
            dynamic.extend(text.as_ref().map(|text| (tag, strings.add(text).into())));
        }
        if self.no_default_search {
            dynamic.push((0x6fff_fffb, 0x800));
        }

        // Versions: 1 is the file itself, then those that it defines, then those that it asks for.
        let mut defined: Vec<&str> = Vec::new();
        let mut asked: Vec<(&str, &str, bool)> = Vec::new();
        let mut symbols: Vec<(u32, u8, u16, u16)> = Vec::new();
        for text in &self.defines {
            let (name, version) = text.split_once('@').map_or((text.as_str(), None), |(name, rest)| (name, Some(rest)));
            let number = version.map_or(1, |version| {
                let hidden = if version.starts_with('@') { 0 } else { 0x8000 };
                let version = version.trim_start_matches('@');
                let at = defined.iter().position(|known| *known == version).unwrap_or_else(|| {
                    defined.push(version);
                    defined.len() - 1
                });
                (at as u16 + 2) | hidden
            });
            symbols.push((strings.add(name), 0x12, 1, number));
        }
        for text in self.asks.iter().chain(&self.versions) {
            let weak = text.ends_with('?');
            let text = text.trim_end_matches('?');
            let is_version = self.versions.iter().any(|version| version.trim_end_matches('?') == text);
            let (name, version) = if is_version {
                (None, Some(text))
            } else {
                text.split_once('@').map_or((Some(text), None), |(name, rest)| (Some(name), Some(rest)))
            };
            // 1 is no version.
            let number = version.map_or(1, |version| {
                let (version, library) = version.split_once('/').unwrap();
                let known = asked.iter().position(|(known, of, _)| (*known, *of) == (version, library));
                let at = known.unwrap_or_else(|| {
                    asked.push((version, library, weak && is_version));
                    asked.len() - 1
                });
                at as u16 + 2 + defined.len() as u16
            });
            if let Some(name) = name {
                let bind = if weak { 0x20 } else { 0x10 };
                symbols.push((strings.add(name), bind, 0, number));
            }
        }
        let names: Vec<u32> = defined.iter().map(|version| strings.add(version)).collect();
        let soname = strings.add(self.soname.as_deref().unwrap_or("self"));
        let asked: Vec<(u32, u32, u32, bool)> = asked
            .iter()
            .map(|(version, library, weak)| (strings.add(version), strings.add(library), sysv_hash(version), *weak))
            .collect();

        let mut body: Vec<u8> = Vec::new();
        let mut place = |bytes: Vec<u8>| {
            body.resize(body.len().next_multiple_of(16), 0);
            let at = HEADERS + body.len() as u64;
            body.extend(bytes);
            at
        };
        let interpreter = place(b"/lib64/ld-linux-x86-64.so.2\0".to_vec());
        let got = place(vec![0; 8 * symbols.len() + 8]);
        let mut table = vec![0; 24];
        for (i, (name, info, section, _)) in symbols.iter().enumerate() {
            let held = self.defines.get(i).and_then(|text| self.contents.get(text));
            let (value, size) = match held {
                Some(bytes) => (place(bytes.clone()), bytes.len() as u64),
                None if *section == 0 => (0, 0),
                None => (got, 0),
            };
            table.extend(bytes![*name, *info, 0u8, *section, value, size]);
        }
        dynamic.push((6, place(table)));
        dynamic.push((11, 24));
        // One bucket with all symbols in it.
        let count = symbols.len() as u32 + 1;
        let mut hash = bytes![1u32, count, if count > 1 { 1u32 } else { 0 }];
        hash.extend(bytes![0u32]);
        hash.extend((1..count).flat_map(|at| (if at + 1 < count { at + 1 } else { 0 }).to_le_bytes()));
        dynamic.push((4, place(hash)));
        if !defined.is_empty() || !asked.is_empty() {
            let mut versym = bytes![0u16];
            versym.extend(symbols.iter().flat_map(|(_, _, _, version)| version.to_le_bytes()));
            dynamic.push((0x6fff_fff0, place(versym)));
        }
        if !defined.is_empty() {
            let own = self.soname.as_deref().unwrap_or("self");
            let entries: Vec<(u16, u32, &str, u16)> = std::iter::once((1u16, soname, own, 1u16))
                .chain(names.iter().zip(&defined).enumerate().map(|(i, (at, name))| (i as u16 + 2, *at, *name, 0)))
                .collect();
            let mut verdef = Vec::new();
            for (i, (number, at, name, flags)) in entries.iter().enumerate() {
                let next = if i + 1 < entries.len() { 28u32 } else { 0 };
                verdef.extend(bytes![1u16, *flags, *number, 1u16, sysv_hash(name), 20u32, next, *at, 0u32]);
            }
            dynamic.push((0x6fff_fffc, place(verdef)));
            dynamic.push((0x6fff_fffd, entries.len() as u64));
        }
        if !asked.is_empty() {
            let mut verneed = Vec::new();
            for (i, (version, library, hash, weak)) in asked.iter().enumerate() {
                let next = if i + 1 < asked.len() { 32u32 } else { 0 };
                verneed.extend(bytes![1u16, 1u16, *library, 16u32, next]);
                let number = i as u16 + 2 + defined.len() as u16;
                verneed.extend(bytes![*hash, if *weak { 2u16 } else { 0 }, number, *version, 0u32]);
            }
            dynamic.push((0x6fff_fffe, place(verneed)));
            dynamic.push((0x6fff_ffff, asked.len() as u64));
        }
        let asks: Vec<u64> =
            symbols.iter().enumerate().filter(|(_, symbol)| symbol.2 == 0).map(|(i, _)| i as u64 + 1).collect();
        if !asks.is_empty() {
            // R_X86_64_GLOB_DAT: the address of the symbol.
            let relocations = asks.iter().flat_map(|at| bytes![got + 8 * at, (at << 32) | 6, 0u64]).collect();
            dynamic.push((7, place(relocations)));
            dynamic.push((8, 24 * asks.len() as u64));
            dynamic.push((9, 24));
        }
        dynamic.push((5, place(strings.bytes.clone())));
        dynamic.push((10, strings.bytes.len() as u64));
        dynamic.push((0, 0));
        let dynamic_at = place(dynamic.iter().flat_map(|(tag, value)| bytes![*tag, *value]).collect());
        let dynamic_size = 16 * dynamic.len() as u64;

        let (mut sections_at, mut sections) = (0, 0u16);
        if !self.sections.is_empty() {
            let mut names = Strings::default();
            let mut headers = vec![0; 64];
            names.add("");
            for (name, content) in &self.sections {
                let (at, size) = (place(content.clone()), content.len() as u64);
                headers.extend(bytes![names.add(name), 1u32, 2u64, at, at, size, 0u64, 16u64, 0u64]);
            }
            let own = names.add(".shstrtab");
            let (at, size) = (place(names.bytes.clone()), names.bytes.len() as u64);
            headers.extend(bytes![own, 3u32, 0u64, 0u64, at, size, 0u64, 1u64, 0u64]);
            sections = headers.len() as u16 / 64;
            sections_at = place(headers);
        }

        let size = HEADERS + body.len() as u64;
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(bytes![
            3u16,
            self.machine.unwrap_or(62),
            1u32,
            0u64,
            64u64,
            sections_at,
            0u32,
            64u16,
            56u16,
            4u16,
            64u16,
            sections,
            sections.saturating_sub(1)
        ]);
        let mut segment = |kind: u32, flags: u32, at: u64, size: u64, align: u64| {
            file.extend(bytes![kind, flags, at, at, at, size, size, align]);
        };
        // A program's interpreter comes before what is loaded; other files have an empty entry there.
        if self.interpreter {
            segment(3, 4, interpreter, 28, 1)
        } else {
            segment(0, 0, 0, 0, 1)
        }
        segment(1, 6, 0, size, 0x1000);
        segment(2, 6, dynamic_at, dynamic_size, 8);
        segment(0x6474_e551, self.stack.unwrap_or(6), 0, 0, 16);
        file.extend(body);
        file
    }
}
