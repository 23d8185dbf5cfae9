//! Containers in sections that hold other data too. Nothing leads to them but their own first bytes, so that such
//! sections are searched; what is in a container is skipped, which is most of it.

use super::super::code::GpuCodes;
use super::super::layout::{Layout, Section};
use super::super::read::{Source, Unreadable};
use super::window::Window;
use super::{Tally, after, container};

/// Sections in which containers have been seen. Code is never searched: it has matches by chance.
const SEARCHED: [&str; 5] = [".ldata", ".lrodata", ".data", ".rodata", RESOURCES];
const RESOURCES: &str = ".cask_resource";
/// Files with GPU code in its own sections are searched in full; of others, only sections up to this size (CUPTI keeps three
/// containers in 0.6 MB): compilers, tables and texts of tens of megabytes hold none.
const SMALL: u64 = 1 << 20;

/// Reads the containers outside `.nv_fatbin` and `__nv_relfatbin`.
pub fn read(source: &Source<'_>, layout: &Layout) -> GpuCodes {
    let has_code =
        ["__nv_relfatbin", ".nv_fatbin", ".nvFatBinSegment"].iter().any(|name| layout.section(name).is_some());
    // Who has such a section keeps all other containers there (cuBLASLt, cuDNN, cuSPARSELt), beside 160 MB of tables.
    let has_resources = layout.section(RESOURCES).is_some();
    let mut tally = Tally::default();
    let mut window = Window::new(source);
    for section in &layout.sections {
        let likely = if has_resources { section.name == RESOURCES } else { has_code || section.size <= SMALL };
        if SEARCHED.contains(&section.name)
            && likely
            && let Err(problem) = search(source, section, &mut window, &mut tally)
        {
            tally.damage(problem);
        }
    }
    tally.finish()
}

fn search(
    source: &Source<'_>,
    section: &Section,
    window: &mut Window<'_, '_>,
    tally: &mut Tally,
) -> Result<(), Unreadable> {
    let end = section.offset.saturating_add(section.size).min(source.len);
    let mut at = section.offset;
    while let Some(found) = window.find(at, end)? {
        match container(window, found, end) {
            Ok((codes, next)) => {
                tally.add(codes, found);
                at = next;
            }
            Err(problem) => {
                at = after(&problem, found);
                tally.damage(problem);
            }
        }
    }
    Ok(())
}
