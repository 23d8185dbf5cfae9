//! `/proc/PID/maps` (proc_pid_maps(5)): takes its text, gives the files that are mapped.

use std::collections::HashMap;

/// A file of a process, by what the kernel says of its mappings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MappedText<'t> {
    /// The path as the kernel writes it: a line break is `\012`, and ` (deleted)` follows where the file has lost its name.
    pub path: &'t [u8],
    /// Number of the file in its file system.
    pub inode: u64,
    /// Major and minor of the file system.
    pub device: (u32, u32),
    /// Its mapping at the lowest address: begin and end.
    pub range: (u64, u64),
    /// Whether any of its mappings may be executed.
    pub executable: bool,
    /// Whether its mappings are allowed different things, as a loader asks for them, not somebody who reads a file.
    pub several: bool,
    permissions: &'t [u8],
}

/// What makes mappings those of one file: path, number and file system.
type Key<'t> = (&'t [u8], u64, (u32, u32));

/// The files in the text, in the order of their lowest addresses. A line that is none says nothing.
pub(super) fn parse(text: &[u8]) -> Vec<MappedText<'_>> {
    let mut files: Vec<MappedText<'_>> = Vec::new();
    let mut known: HashMap<Key<'_>, usize> = HashMap::new();
    for mapped in text.split(|byte| *byte == b'\n').filter_map(line) {
        match known.entry((mapped.path, mapped.inode, mapped.device)) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(files.len());
                files.push(mapped);
            }
            std::collections::hash_map::Entry::Occupied(entry) => {
                let file = &mut files[*entry.get()];
                file.executable |= mapped.executable;
                file.several |= file.permissions != mapped.permissions;
            }
        }
    }
    files
}

/// `7f1c-7f1d r-xp 00002000 fe:00 247030    /usr/bin/cat`; `None` for what is no file's.
fn line(line: &[u8]) -> Option<MappedText<'_>> {
    let (range, rest) = word(line)?;
    let (permissions, rest) = word(rest)?;
    let (_offset, rest) = word(rest)?;
    let (device, rest) = word(rest)?;
    let (inode, rest) = word(rest)?;
    // The path itself may hold blanks; those before it fill up the column.
    let start = rest.iter().position(|byte| *byte != b' ')?;
    let path = &rest[start..];
    let (begin, end) = split(range, b'-')?;
    let (major, minor) = split(device, b':')?;
    let inode: u64 = std::str::from_utf8(inode).ok()?.parse().ok()?;
    (path.first() == Some(&b'/') && inode != 0).then_some(MappedText {
        path,
        inode,
        device: (u32::try_from(major).ok()?, u32::try_from(minor).ok()?),
        range: (begin, end),
        executable: permissions.contains(&b'x'),
        several: false,
        permissions,
    })
}

/// Up to the next blank, and what is behind it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b' ')?;
    (end > 0).then_some((&text[..end], &text[end + 1..]))
}

/// Two hexadecimal numbers.
fn split(text: &[u8], by: u8) -> Option<(u64, u64)> {
    let at = text.iter().position(|byte| *byte == by)?;
    let number = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
    Some((number(&text[..at])?, number(&text[at + 1..])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_all_their_mappings() {
        let text = b"5641ab0f2000-5641ab0f4000 r--p 00000000 fe:00 247030                     /usr/bin/cat\n\
            5641ab0f4000-5641ab0f9000 r-xp 00002000 fe:00 247030                     /usr/bin/cat\n\
            5641ab100000-5641ab121000 rw-p 00000000 00:00 0                          [heap]\n\
            7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
            7f0000001000-7f0000002000 r--s 00000000 fe:00 9                          /a  b\\012c (deleted)\n\
            not a line\n";
        let files = parse(text);
        let seen: Vec<(&[u8], u64, bool, bool)> =
            files.iter().map(|file| (file.path, file.inode, file.executable, file.several)).collect();
        assert_eq!(
            seen,
            [(&b"/usr/bin/cat"[..], 247030, true, true), (&b"/a  b\\012c (deleted)"[..], 9, false, false)]
        );
        assert_eq!((files[0].range, files[0].device), ((0x5641ab0f2000, 0x5641ab0f4000), (0xfe, 0)));
    }
}
