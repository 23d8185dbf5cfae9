//! Takes the sections of a file that hold GPU code, gives what its containers hold; the code itself is not read.
//!
//! A container is a header of 16 bytes and entries, each with a header of its own and a payload that is skipped. The
//! format is not documented; this is what `cuobjdump` lists, on every file that it can read.

mod embedded;
mod header;
mod window;

use std::collections::BTreeMap;

use super::code::{Code, GpuCodes};
use super::layout::{Layout, Section};
use super::read::{Source, Unreadable};
use header::{Container, Entry, Packed};
use window::Window;

pub(super) use embedded::read as read_embedded;

/// Entries that a container may have; the largest that are known have twenty.
const MOST_ENTRIES: usize = 4096;
/// Entries of all contents that differ; what is known has a few hundred in a file.
const MOST_DISTINCT: usize = 256 << 10;
/// Damage that is reported for a file; more of the same says nothing new.
const MOST_DAMAGED: usize = 16;

/// Reads `.nv_fatbin` and `__nv_relfatbin`: containers back to back.
pub(super) fn read(source: &Source<'_>, layout: &Layout) -> GpuCodes {
    let mut tally = Tally::default();
    let mut window = Window::new(source);
    for section in &layout.sections {
        if matches!(section.name, ".nv_fatbin" | "__nv_relfatbin") {
            walk(source, section, &mut window, &mut tally);
        }
    }
    tally.finish()
}

fn walk(source: &Source<'_>, section: &Section, window: &mut Window<'_, '_>, tally: &mut Tally) {
    let end = section.offset.saturating_add(section.size).min(source.len);
    if section.offset.checked_add(section.size).is_none_or(|end| end > source.len) {
        let what = format!("{} of {} bytes lies beyond the file's {}", section.name, section.size, source.len);
        tally.damage(Unreadable::damaged(section.offset, what));
    }
    let mut at = section.offset;
    while at < end {
        match container(window, at, end) {
            Ok((codes, next)) => {
                tally.add(codes, at);
                at = next;
            }
            Err(problem) => {
                // What follows is found again by its own header.
                let from = after(&problem, at);
                tally.damage(problem);
                match window.find(from, end) {
                    Ok(Some(next)) => at = next,
                    Ok(None) => return,
                    Err(problem) => return tally.damage(problem),
                }
            }
        }
    }
}

/// Where to go on behind damage to the container at `at`: what was sound is not looked at again, or containers that lie in
/// each other would each be walked to the end of the outermost.
fn after(problem: &Unreadable, at: u64) -> u64 {
    problem.offset.max(at).saturating_add(Container::ALIGNMENT)
}

/// Reads the container at `at`, which must end before `end`; gives its codes and where it ends.
fn container(window: &mut Window<'_, '_>, at: u64, end: u64) -> Result<(Vec<Packed>, u64), Unreadable> {
    let header = window.get(at, Container::SIZE, end, "the header of a GPU code container")?;
    let size =
        Container::parse(header).ok_or_else(|| Unreadable::damaged(at, "no GPU code container begins here"))?.size;
    let from = at + Container::SIZE as u64;
    let to = from.checked_add(size).filter(|to| *to <= end && size > 0).ok_or_else(|| {
        let room = end.saturating_sub(from);
        Unreadable::damaged(at, format!("a GPU code container of {size} bytes where {room} are left"))
    })?;
    let mut codes = Vec::with_capacity(4);
    let mut entry_at = from;
    let mut count = 0;
    while entry_at < to {
        let bytes = window.get(entry_at, Entry::SIZE, to, "the header of a piece of GPU code")?;
        let entry = Entry::parse(bytes).map_err(|what| Unreadable::damaged(entry_at, what))?;
        codes.extend(entry.code);
        count += 1;
        if count > MOST_ENTRIES {
            let what = format!("a GPU code container of more than {MOST_ENTRIES} pieces");
            return Err(Unreadable::damaged(entry_at, what));
        }
        entry_at = entry_at.checked_add(entry.size).filter(|next| *next <= to).ok_or_else(|| {
            let what = format!("a piece of GPU code of {} bytes, beyond its container's end at {to}", entry.size);
            Unreadable::damaged(entry_at, what)
        })?;
    }
    codes.sort_unstable();
    Ok((codes, to))
}

/// What was counted so far.
#[derive(Default)]
struct Tally {
    containers: BTreeMap<Vec<Packed>, usize>,
    /// Entries of all of them.
    distinct: usize,
    damaged: Vec<Unreadable>,
}

impl Tally {
    /// Counts the container at `at`.
    fn add(&mut self, codes: Vec<Packed>, at: u64) {
        if let Some(count) = self.containers.get_mut(&codes) {
            *count += 1;
        } else if self.distinct + codes.len().max(1) > MOST_DISTINCT {
            self.damage(Unreadable::damaged(at, "more GPU code containers that differ than any file has"));
        } else {
            self.distinct += codes.len().max(1);
            self.containers.insert(codes, 1);
        }
    }

    fn damage(&mut self, problem: Unreadable) {
        if self.damaged.len() < MOST_DAMAGED {
            self.damaged.push(problem);
        }
    }

    fn finish(self) -> GpuCodes {
        let unpack = |codes: Vec<Packed>| -> Vec<Code> { codes.into_iter().map(Packed::code).collect() };
        let mut containers: Vec<_> = self.containers.into_iter().map(|(codes, count)| (unpack(codes), count)).collect();
        containers.sort();
        GpuCodes { containers, damaged: self.damaged }
    }
}
