//! Takes the version tables (LSB: symbol versioning), gives what each version number of a file stands for: [`Versions`].

use super::dynamic::Dynamic;
use super::object::VersionNeed;
use super::read::{Source, Unreadable, u16_at, u32_at};

/// A version number has 15 bits, so a file has no more versions.
const MOST: usize = 0x8000;
/// `VER_FLG_BASE`: the library's own name, which the loader does not count as a version of symbols.
const BASE: u16 = 1;
/// `VER_FLG_WEAK`.
const WEAK: u16 = 2;

/// The versions of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Versions {
    /// What it asks of libraries.
    pub needs: Vec<VersionNeed>,
    /// What it defines, the base among them.
    pub definitions: Vec<String>,
    /// For each version number what it stands for.
    pub numbers: Vec<Number>,
}

/// What a version number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Number {
    /// No version: local, global, or the base.
    #[default]
    Nothing,
    /// An entry of `needs`.
    Need(u32),
    /// An entry of `definitions`.
    Definition(u32),
}

impl Versions {
    pub fn read(source: &Source<'_>, dynamic: &Dynamic, damaged: &mut Vec<Unreadable>) -> Self {
        let mut versions = Self::default();
        if let Err(problem) = versions.read_definitions(source, dynamic) {
            damaged.push(problem);
        }
        if let Err(problem) = versions.read_needs(source, dynamic) {
            damaged.push(problem);
        }
        versions
    }

    /// What `number` of a symbol stands for.
    pub fn of(&self, number: u16) -> Number {
        self.numbers.get(usize::from(number & 0x7fff)).copied().unwrap_or_default()
    }

    fn set(&mut self, number: u16, to: Number) {
        let at = usize::from(number & 0x7fff);
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, Number::Nothing);
        }
        self.numbers[at] = to;
    }

    fn read_definitions(&mut self, source: &Source<'_>, dynamic: &Dynamic) -> Result<(), Unreadable> {
        let Some((mut at, _)) = dynamic.version_definitions else { return Ok(()) };
        let mut record = [0; 20];
        loop {
            source.fill(at, &mut record, "a defined version")?;
            let (flags, number) = (u16_at(&record, 2), u16_at(&record, 4));
            let name_at = at.saturating_add(u32_at(&record, 12).into());
            let mut name = [0; 8];
            source.fill(name_at, &mut name, "the name of a defined version")?;
            let text = dynamic.strings.text(source, u32_at(&name, 0).into())?;
            if flags & BASE == 0 {
                self.set(number, Number::Definition(self.definitions.len() as u32));
            }
            self.definitions.push(text);
            match next(at, u32_at(&record, 16), self.definitions.len(), "defined")? {
                Some(further) => at = further,
                None => return Ok(()),
            }
        }
    }

    fn read_needs(&mut self, source: &Source<'_>, dynamic: &Dynamic) -> Result<(), Unreadable> {
        let Some((mut at, _)) = dynamic.version_needs else { return Ok(()) };
        let (mut record, mut version) = ([0; 16], [0; 16]);
        let mut libraries = 0;
        loop {
            source.fill(at, &mut record, "a library of needed versions")?;
            let mut version_at = at.saturating_add(u32_at(&record, 8).into());
            let mut further = u16_at(&record, 2) > 0;
            while further {
                source.fill(version_at, &mut version, "a needed version")?;
                let (flags, number) = (u16_at(&version, 4), u16_at(&version, 6));
                self.set(number, Number::Need(self.needs.len() as u32));
                self.needs.push(VersionNeed {
                    // Read for each, so that thousands of copies of a long name are more text than any file has.
                    library: dynamic.strings.text(source, u32_at(&record, 4).into())?,
                    name: dynamic.strings.text(source, u32_at(&version, 8).into())?,
                    weak: flags & WEAK != 0,
                });
                let after = next(version_at, u32_at(&version, 12), self.needs.len(), "needed")?;
                further = after.is_some();
                version_at = after.unwrap_or(version_at);
            }
            libraries += 1;
            match next(at, u32_at(&record, 12), libraries, "needed")? {
                Some(further) => at = further,
                None => return Ok(()),
            }
        }
    }
}

/// Where the next entry of a list is. Distances are positive, so that a list cannot lead in a circle, but it may be longer
/// than any real one.
fn next(at: u64, distance: u32, count: usize, what: &str) -> Result<Option<u64>, Unreadable> {
    if count > MOST {
        return Err(Unreadable::damaged(at, format!("more {what} versions than there are version numbers")));
    }
    Ok((distance != 0).then(|| at.saturating_add(distance.into())))
}
