//! Where the loader looks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{library, link, read, troubles, write};
use gpulock::inventory::{Cache, DriverFileKind, LoaderKind};
use gpulock::python::Platform;

/// A root filesystem in the manner of Debian.
fn debian(root: &Path) {
    let loader = b"\x7fELF\0\0\x09\0\0\0/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0/lib/\0/usr/lib/\0\0/etc/ld.so.cache\0";
    write(root, "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", loader);
    link("usr/lib", root, "lib");
    link("usr/lib64", root, "lib64");
    link("/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", root, "usr/lib64/ld-linux-x86-64.so.2");
    let libc = b"\x7fELF\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n";
    write(root, "usr/lib/x86_64-linux-gnu/libc.so.6", libc);
    write(root, "etc/ld.so.conf", "include ld.so.conf.d/*.conf\n");
    write(root, "etc/ld.so.conf.d/libc.conf", "# libc default configuration\n/usr/local/lib\n");
}

/// A cache of format 1.1 with these entries: name, path, flags, hwcap; behind an old one if asked for.
fn cache(entries: &[(&str, &str, u32, u64)], hwcaps: &[&str], old: bool) -> Vec<u8> {
    let mut strings: Vec<u8> = Vec::new();
    let start = 48 + 24 * entries.len();
    let mut place = |text: &str| {
        let at = start + strings.len();
        strings.extend(text.bytes().chain([0]));
        at as u32
    };
    let mut table = Vec::new();
    for (name, path, flags, hwcap) in entries {
        for number in [*flags, place(name), place(path), 0] {
            table.extend(number.to_le_bytes());
        }
        table.extend(hwcap.to_le_bytes());
    }
    let names: Vec<u32> = hwcaps.iter().map(|name| place(name)).collect();
    let length = strings.len() as u32;
    let extension = (start + strings.len()).next_multiple_of(4);
    let mut bytes = b"glibc-ld.so.cache1.1".to_vec();
    bytes.extend((entries.len() as u32).to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend([2, 0, 0, 0]);
    bytes.extend((extension as u32).to_le_bytes());
    bytes.extend([0; 12]);
    bytes.extend(table);
    bytes.extend(strings);
    bytes.resize(extension, 0);
    let list = extension as u32 + 24;
    for number in [0xEAA4_2174, 1, 1, 0, list, 4 * names.len() as u32].into_iter().chain(names) {
        bytes.extend(number.to_le_bytes());
    }
    if old {
        let mut before = b"ld.so-1.7.0\0".to_vec();
        before.extend(1_u32.to_le_bytes());
        before.extend([0; 12]);
        before.resize(before.len().next_multiple_of(8), 0);
        before.extend(bytes);
        return before;
    }
    bytes
}

#[test]
fn the_cache_is_read() {
    let entries = [
        ("liba.so.1", "/usr/lib/glibc-hwcaps/x86-64-v3/liba.so.1", 0x303, 1 << 62 | 1),
        ("liba.so.1", "/usr/lib/liba.so.1", 0x303, 0),
        ("liba.so.1", "/usr/lib32/liba.so.1", 3, 0),
        ("liba.so.1", "/usr/lib/aarch64-linux-gnu/liba.so.1", 0xa03, 0),
    ];
    for old in [false, true] {
        let cache = Cache::parse(&cache(&entries, &["x86-64-v2", "x86-64-v3"], old)).unwrap();
        let found = |platform| {
            let entries = cache.lookup("liba.so.1", platform);
            entries.map(|e| format!("{} {}", e.path.display(), e.hwcap.as_deref().unwrap_or("-"))).collect::<Vec<_>>()
        };
        let x86 = ["/usr/lib/glibc-hwcaps/x86-64-v3/liba.so.1 x86-64-v3", "/usr/lib/liba.so.1 -"];
        assert_eq!(found(Platform::LinuxX86_64), x86);
        assert_eq!(found(Platform::LinuxAarch64), ["/usr/lib/aarch64-linux-gnu/liba.so.1 -"]);
        assert_eq!((cache.entries().len(), cache.lookup("libb.so", Platform::LinuxX86_64).count()), (4, 0));
    }
}

#[test]
fn damaged_caches_are_no_caches() {
    let whole = cache(&[("liba.so.1", "/usr/lib/liba.so.1", 0x303, 1 << 62 | 7)], &["x"], true);
    for end in 0..whole.len() {
        // Whatever is cut off: an answer, and no more entries than there are.
        if let Ok(cache) = Cache::parse(&whole[..end]) {
            assert!(cache.entries().len() <= 1);
        }
    }
    for at in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let _ = Cache::parse(&damaged);
        }
    }
    assert!(Cache::parse(b"").is_err());
    assert!(Cache::parse(b"ld.so-1.7.0").is_err());
    let mut many = whole.clone();
    many[32 + 20..32 + 24].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(Cache::parse(&many).unwrap_err().contains("entries"));
}

/// A million entries, all with one long name: 24 MB that would become gigabytes.
#[test]
fn caches_whose_names_overlap() {
    const COUNT: u32 = 1_000_000;
    let mut bytes = b"glibc-ld.so.cache1.1".to_vec();
    bytes.extend([COUNT, 4001, 2, 0, 0, 0, 0].map(u32::to_le_bytes).concat());
    let name = 48 + 24 * COUNT;
    bytes.extend([0x303, name, name, 0, 0, 0].map(u32::to_le_bytes).concat().repeat(COUNT as usize));
    bytes.extend([&[b'n'; 4000][..], b"\0"].concat());
    assert!(Cache::parse(&bytes).unwrap_err().contains("names are longer"));
}

#[test]
fn a_configuration_of_a_hundred_thousand_folders() {
    let folder = tempfile::tempdir().unwrap();
    debian(folder.path());
    let lines: String = (0..100_000).map(|i| format!("/{i}\n")).collect();
    write(folder.path(), "etc/ld.so.conf", lines);
    let begin = std::time::Instant::now();
    assert_eq!(read(folder.path()).loader.configured.len(), 4096);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

/// This machine's own cache, as its own tool prints it.
#[test]
fn as_ldconfig_prints_it() {
    let Ok(bytes) = std::fs::read("/etc/ld.so.cache") else { return };
    let tools = ["/sbin/ldconfig", "ldconfig"];
    let Some(output) = tools.iter().find_map(|tool| Command::new(tool).arg("-p").output().ok()) else {
        eprintln!("not compared: there is no ldconfig");
        return;
    };
    let cache = Cache::parse(&bytes).unwrap();
    let ours: Vec<(String, PathBuf)> =
        cache.entries().iter().map(|entry| (entry.name.clone(), entry.path.clone())).collect();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (name, path) = line.trim().split_once(" => ")?;
        Some((name.split_once(" (")?.0.to_owned(), PathBuf::from(path)))
    };
    let theirs: Vec<(String, PathBuf)> = text.lines().filter_map(line).collect();
    assert!(!theirs.is_empty());
    assert_eq!(ours, theirs);
    let platforms = Platform::ALL.map(|platform| cache.lookup("libc.so.6", platform).count());
    assert_eq!(platforms.iter().sum::<usize>(), 1, "{platforms:?}");
}

#[test]
fn a_root_filesystem_says_where_its_loader_looks() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    debian(root);
    write(root, "etc/ld.so.conf.d/cuda.conf", "/usr/local/cuda/lib64 # CUDA\nrelative\n/usr/local/lib\n\n");
    write(root, "etc/ld.so.conf.d/round.conf", "include /etc/ld.so.conf\nhwcap 1 x\n/old=libc6\n");
    write(root, "etc/ld.so.conf.d/unread", "/unread\n");
    write(root, "etc/ld.so.preload", "/usr/lib/liba.so:/b.so\n");
    write(root, "etc/ld.so.cache", cache(&[("libcuda.so.1", "/opt/driver/libcuda.so.1", 0x303, 0)], &[], false));
    let inventory = read(root);
    let loader = &inventory.loader;
    assert_eq!((loader.kind, loader.platform), (LoaderKind::Glibc, Some(Platform::LinuxX86_64)));
    assert_eq!(loader.path.as_deref(), Some(Path::new("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")));
    assert_eq!(loader.glibc.as_ref().unwrap().value.to_string(), "2.36");
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
    assert_eq!(paths(&loader.defaults), ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"]);
    assert_eq!(loader.lib, "lib/x86_64-linux-gnu");
    assert_eq!(paths(&loader.configured), ["/usr/local/cuda/lib64", "/usr/local/lib", "/old"]);
    assert_eq!(paths(&loader.preload), ["/usr/lib/liba.so", "/b.so"]);
    assert_eq!(loader.cache.as_ref().unwrap().entries().len(), 1);
    assert_eq!(inventory.subject.kind.name(), "root-filesystem");
    assert_eq!(troubles(&inventory), [""; 0]);
}

#[test]
fn no_loader_and_another_loader() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "etc/os-release", "NAME=\"Alpine Linux\"\n");
    assert_eq!(read(folder.path()).loader.kind, LoaderKind::Absent);
    write(folder.path(), "lib/ld-musl-x86_64.so.1", library("musl"));
    let inventory = read(folder.path());
    assert_eq!((inventory.loader.kind, inventory.loader.glibc.is_none()), (LoaderKind::Musl, true));
}

#[test]
fn a_damaged_cache_is_named() {
    let folder = tempfile::tempdir().unwrap();
    debian(folder.path());
    write(folder.path(), "etc/ld.so.cache", "text");
    let inventory = read(folder.path());
    assert!(inventory.loader.cache.is_none());
    assert_eq!(troubles(&inventory), ["/etc/ld.so.cache: it does not begin as a cache of glibc 2.2 or later"]);
}

#[test]
fn driver_compat_and_stub() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    debian(root);
    write(root, "usr/lib/x86_64-linux-gnu/libcuda.so.570.124.06", library("driver"));
    link("libcuda.so.570.124.06", root, "usr/lib/x86_64-linux-gnu/libcuda.so.1");
    link("libcuda.so.1", root, "usr/lib/x86_64-linux-gnu/libcuda.so");
    write(root, "usr/local/cuda-12.8/compat/libcuda.so.575.51.03", library("compat"));
    link("libcuda.so.575.51.03", root, "usr/local/cuda-12.8/compat/libcuda.so.1");
    link("/usr/local/cuda-12.8", root, "usr/local/cuda");
    write(root, "usr/local/cuda-12.8/targets/x86_64-linux/lib/stubs/libcuda.so", library("stub"));
    write(root, "usr/local/lib/libcudart.so.12", library("another"));
    let inventory = read(root);
    let shown: BTreeSet<_> = inventory
        .driver
        .iter()
        .map(|f| (f.kind, f.file.display().to_string(), f.version.as_ref().map(ToString::to_string)))
        .collect();
    let file = |kind, file: &str, version: Option<&str>| (kind, file.to_owned(), version.map(str::to_owned));
    assert_eq!(
        shown.into_iter().collect::<Vec<_>>(),
        [
            file(DriverFileKind::Driver, "/usr/lib/x86_64-linux-gnu/libcuda.so.570.124.06", Some("570.124.06")),
            file(DriverFileKind::Compat, "/usr/local/cuda-12.8/compat/libcuda.so.575.51.03", Some("575.51.03")),
            file(DriverFileKind::Stub, "/usr/local/cuda-12.8/targets/x86_64-linux/lib/stubs/libcuda.so", None),
        ]
    );
    assert_eq!(inventory.driver.len(), 3);
}
