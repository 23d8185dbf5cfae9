//! Programs with libraries, folders and search paths drawn by chance.

use super::fixture::Elf;
use super::real::agree;

/// A small generator of numbers (xorshift), so that a failure comes again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn one_in(&mut self, end: usize) -> bool {
        self.below(end) == 0
    }
}

const LIBRARIES: usize = 5;
const FOLDERS: usize = 4;

fn elf(chance: &mut Chance, number: Option<usize>) -> Elf {
    let mut elf = match number {
        Some(number) => Elf::library(&format!("lib{number}.so.1")),
        None => Elf::program(),
    };
    let path = |chance: &mut Chance| {
        let count = chance.below(3);
        (0..=count).map(|_| format!("$ORIGIN/../{}", chance.below(FOLDERS))).collect::<Vec<_>>().join(":")
    };
    if chance.one_in(3) {
        elf.rpath = Some(path(chance));
    }
    if chance.one_in(3) {
        elf.runpath = Some(path(chance));
    }
    for other in 0..LIBRARIES {
        let asked = number.is_none() || chance.one_in(3);
        if Some(other) != number && asked {
            elf.needed.push(format!("lib{other}.so.1"));
        }
    }
    for symbol in 0..4 {
        if number.is_some() && chance.one_in(2) {
            elf.defines.push(match chance.below(4) {
                0 => format!("f{symbol}@@V1"),
                1 => format!("f{symbol}@V2"),
                _ => format!("f{symbol}"),
            });
        }
    }
    elf
}

/// Asks for symbols of libraries that it needs, sometimes with a version.
fn asks(chance: &mut Chance, elf: &mut Elf) {
    for symbol in 0..4 {
        let name = format!("f{symbol}");
        if elf.defines.iter().any(|defined| defined.starts_with(&name)) || chance.one_in(2) {
            continue;
        }
        let library = elf.needed.get(chance.below(LIBRARIES)).cloned();
        elf.asks.push(match (chance.below(3), library) {
            (0, Some(library)) => format!("{name}@V{}/{library}", 1 + chance.below(2)),
            (1, _) => format!("{name}?"),
            _ => name,
        });
    }
}

#[test]
fn any_program_is_loaded_as_the_real_loader_does() {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let (mut whole, mut broken) = (0, 0);
    for _ in 0..150 {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for number in 0..LIBRARIES {
            for place in 0..FOLDERS {
                if chance.one_in(2) {
                    let mut elf = elf(&mut chance, Some(number));
                    asks(&mut chance, &mut elf);
                    elf.write(&root.join(format!("{place}/lib{number}.so.1")));
                }
            }
        }
        let mut main = elf(&mut chance, None);
        asks(&mut chance, &mut main);
        let program = root.join("bin/main");
        main.write(&program);
        let library_path = if chance.one_in(2) { root.join(chance.below(FOLDERS).to_string()) } else { "".into() };
        let library_path = library_path.display().to_string();
        // Where a library is missing, its symbols are too: ld.so says so again, the model does not.
        let missing = super::real::modelled(&program, &library_path).loads.iter().any(|(_, path)| path.is_none());
        if missing {
            broken += 1;
            let ours = super::real::modelled(&program, &library_path).loads;
            let Some(real) = super::real::listed(&program, &library_path) else { continue };
            let (found, mut lost): (Vec<_>, Vec<_>) = real.loads.into_iter().partition(|(_, path)| path.is_some());
            lost.sort();
            lost.dedup();
            assert_eq!(ours, found.into_iter().chain(lost).collect::<Vec<_>>(), "{}", folder.keep().display());
        } else {
            whole += 1;
            agree(&program, &library_path);
        }
    }
    assert!(whole > 20 && broken > 20, "{whole} whole, {broken} with something missing");
}
