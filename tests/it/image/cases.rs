//! Small images, each with one thing that layers may do, and the files that they make up: as `umoci unpack` has them,
//! which the tests against real tools compare.

use super::make::{Layer, header};

/// Ninety letters.
macro_rules! long {
    () => {
        "llllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll"
    };
}

/// A case that umoci refuses, and GNU tar unpacks.
pub const OF_GNU: &str = "sparse files of old GNU tar";

pub struct Case {
    pub name: &'static str,
    pub layers: Vec<Layer>,
    /// `PATH WHAT`: the content of a file in Python, the size of another in parentheses, `/` for a folder, `-> TARGET`, `|` for a pipe, `#` for a device, and `= PATH` for
    /// a further name of a file; sorted.
    pub files: &'static [&'static str],
}

fn layer() -> Layer {
    Layer::default()
}

/// The lower layer of most.
fn base() -> Layer {
    layer().folder("a").file("a/x.py", "x1").file("a/y.py", "y1").folder("a/b").file("a/b/z.py", "z1")
}

pub fn all() -> Vec<Case> {
    let deep = concat!("a/", long!(), "/", long!(), "/n.py");
    let case = |name, layers, files| Case { name, layers, files };
    vec![
        case("one layer", vec![base()], &["a /", "a/b /", "a/b/z.py z1", "a/x.py x1", "a/y.py y1"]),
        case(
            "a file in place of a file",
            vec![base(), layer().file("a/x.py", "x2")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x2", "a/y.py y1"],
        ),
        case(
            "whiteout of a file",
            vec![base(), layer().file("a/.wh.x.py", "")],
            &["a /", "a/b /", "a/b/z.py z1", "a/y.py y1"],
        ),
        case("whiteout of a folder", vec![base(), layer().file("a/.wh.b", "")], &["a /", "a/x.py x1", "a/y.py y1"]),
        case(
            "whiteout of what is not there",
            vec![base(), layer().file("a/.wh.q", "").file("q/.wh.r", "")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "whiteout, and the name again",
            vec![base(), layer().file("a/.wh.b", "").file("a/b", "file")],
            &["a /", "a/b (4)", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "whiteout behind the name in its own layer",
            vec![base(), layer().file("a/x.py", "x2").file("a/.wh.x.py", "")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x2", "a/y.py y1"],
        ),
        case(
            "whiteout behind what lies below it",
            vec![base(), layer().file("a/b/n.py", "n2").file("a/.wh.b", "")],
            &["a /", "a/b /", "a/b/n.py n2", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "whiteout in two layers",
            vec![base(), layer().file("a/.wh.b", ""), layer().file("a/b/w.py", "w3")],
            &["a /", "a/b /", "a/b/w.py w3", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "opaque folder",
            vec![base(), layer().folder("a").file("a/.wh..wh..opq", "").file("a/n.py", "n2")],
            &["a /", "a/n.py n2"],
        ),
        case(
            "opaque folder, said last",
            vec![base(), layer().folder("a").file("a/n.py", "n2").file("a/.wh..wh..opq", "")],
            &["a /", "a/n.py n2"],
        ),
        case(
            "opaque folder that keeps one below",
            vec![base(), layer().file("a/b/n.py", "n2").file("a/.wh..wh..opq", "")],
            &["a /", "a/b /", "a/b/n.py n2"],
        ),
        case(
            "hard link in one layer",
            vec![base().hard("a/h.py", "a/x.py")],
            &["a /", "a/b /", "a/b/z.py z1", "a/h.py x1", "a/x.py = a/h.py", "a/y.py y1"],
        ),
        case(
            "hard link to a lower layer",
            vec![base(), layer().hard("h.py", "a/b/z.py")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x1", "a/y.py y1", "h.py = a/b/z.py"],
        ),
        case(
            "hard link whose first name goes",
            vec![base(), layer().hard("h.py", "a/x.py").file("a/.wh.x.py", "")],
            &["a /", "a/b /", "a/b/z.py z1", "a/y.py y1", "h.py x1"],
        ),
        case(
            "hard link whose first name is replaced",
            vec![base().hard("h.py", "a/x.py"), layer().file("a/x.py", "x2")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x2", "a/y.py y1", "h.py x1"],
        ),
        case(
            "hard link to a link",
            vec![base().link("l", "a/x.py").hard("m", "l")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x1", "a/y.py y1", "l -> a/x.py", "m = l"],
        ),
        case(
            "file, link, file",
            vec![base(), layer().link("a/x.py", "y.py"), layer().file("a/x.py", "x3")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x3", "a/y.py y1"],
        ),
        case(
            "folder in place of a file",
            vec![base(), layer().folder("a/x.py").file("a/x.py/n.py", "n2")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py /", "a/x.py/n.py n2", "a/y.py y1"],
        ),
        case(
            "file in place of a folder",
            vec![base(), layer().file("a/b", "b2")],
            &["a /", "a/b (2)", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "link in place of a folder",
            vec![base(), layer().link("a/b", "/c")],
            &["a /", "a/b -> /c", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "folder in place of a link",
            vec![base().link("l", "a"), layer().folder("l").file("l/n.py", "n2")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x1", "a/y.py y1", "l /", "l/n.py n2"],
        ),
        case(
            "through a link to a folder",
            vec![base().link("l", "a/b"), layer().file("l/n.py", "n2")],
            &["a /", "a/b /", "a/b/n.py n2", "a/b/z.py z1", "a/x.py x1", "a/y.py y1", "l -> a/b"],
        ),
        case(
            "through an absolute link",
            vec![base().link("a/l", "/a/b"), layer().file("a/l/n.py", "n2")],
            &["a /", "a/b /", "a/b/n.py n2", "a/b/z.py z1", "a/l -> /a/b", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "through a link that leads out",
            vec![base().link("l", "../../.."), layer().file("l/n.py", "n2")],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x1", "a/y.py y1", "l -> ../../..", "n.py n2"],
        ),
        case(
            "through a link to nothing",
            vec![base().link("l", "new/er"), layer().file("l/n.py", "n2")],
            &[
                "a /",
                "a/b /",
                "a/b/z.py z1",
                "a/x.py x1",
                "a/y.py y1",
                "l -> new/er",
                "new /",
                "new/er /",
                "new/er/n.py n2",
            ],
        ),
        case(
            "whiteout through a link",
            vec![base().link("l", "a/b"), layer().file("l/.wh.z.py", "")],
            &["a /", "a/b /", "a/x.py x1", "a/y.py y1", "l -> a/b"],
        ),
        case(
            "paths that lead out",
            vec![layer().file("../../n.py", "n1").file("/abs/o.py", "o1").file("a/../../p.py", "p1")],
            &["abs /", "abs/o.py o1", "n.py n1", "p.py p1"],
        ),
        case(
            "paths with dots and slashes",
            vec![layer().folder("./").folder("./a/").file("./a//./x.py", "x1")],
            &["a /", "a/x.py x1"],
        ),
        case("folders that nobody names", vec![layer().file("p/q/r.py", "r1")], &["p /", "p/q /", "p/q/r.py r1"]),
        case("one name twice", vec![layer().file("n.py", "n1").file("n.py", "n22")], &["n.py n22"]),
        case("pipe and device", vec![layer().pipe("p").device("d"), layer().file("p", "f")], &["d #", "p (1)"]),
        case("long names as GNU writes them", vec![layer().file(deep, "n1").link("l", deep)], LONG),
        case(
            "long names as pax has them",
            vec![layer().pax(&[("path", deep)]).file("short", "n1").pax(&[("linkpath", deep)]).link("l", "short")],
            LONG,
        ),
        case(
            "names that are no UTF-8 in pax's eyes",
            vec![layer().pax(&[("path", "ü.py"), ("comment", "x=y")]).file("s", "n1")],
            &["ü.py n1"],
        ),
        case(
            "size as pax has it",
            vec![layer().pax(&[("size", "2")]).bytes("n.py", 0o644, b"n1").file("o.py", "o1")],
            &["n.py n1", "o.py o1"],
        ),
        case(
            "values of pax that are no text",
            vec![
                layer()
                    .pax_bytes(&[
                        ("SCHILY.xattr.security.capability", b"\x01\0\0\x02\n\0=\n5 x\n\0\0\0\0\0\0\0\0"),
                        ("path", b"n.py"),
                    ])
                    .file("s", "n1")
                    .pax(&[("SCHILY.acl.access", "user::rw-\ngroup::r--\nother::r--\n"), ("path", "o.py")])
                    .file("s", "o1"),
            ],
            &["n.py n1", "o.py o1"],
        ),
        case("numbers that are left out", vec![without_numbers()], &["a /", "n.py n1", "o.py "]),
        case(
            "sparse files of pax 1.0",
            vec![
                layer()
                    .pax(&[
                        ("GNU.sparse.major", "1"),
                        ("GNU.sparse.minor", "0"),
                        ("GNU.sparse.name", "s.py"),
                        ("GNU.sparse.realsize", "9"),
                    ])
                    .bytes("GNUSparseFile.0/s.py", 0o644, &sparse("2\n1\n2\n6\n3\n", b"abcde"))
                    .file("o.py", "o1"),
            ],
            &["o.py o1", "s.py \\0ab\\0\\0\\0cde"],
        ),
        case(
            "sparse files of pax 0.1",
            vec![
                layer()
                    .pax(&[
                        ("GNU.sparse.numblocks", "2"),
                        ("GNU.sparse.map", "1,2,6,3"),
                        ("GNU.sparse.name", "s.py"),
                        ("GNU.sparse.size", "9"),
                    ])
                    .bytes("GNUSparseFile.0/s.py", 0o644, b"abcde"),
            ],
            &["s.py \\0ab\\0\\0\\0cde"],
        ),
        case(OF_GNU, vec![old_sparse()], &["o.py o1", "s.py \\0*512a*512\\0*512bcdef"]),
        case(
            "an empty layer between",
            vec![base(), layer(), layer().file("a/.wh.b", "")],
            &["a /", "a/x.py x1", "a/y.py y1"],
        ),
        case(
            "the same layer twice",
            vec![base(), layer().file("a/.wh.b", ""), base()],
            &["a /", "a/b /", "a/b/z.py z1", "a/x.py x1", "a/y.py y1"],
        ),
    ]
}

const LONG: &[&str] = &[
    "a /",
    concat!("a/", long!(), " /"),
    concat!("a/", long!(), "/", long!(), " /"),
    concat!("a/", long!(), "/", long!(), "/n.py n1"),
    concat!("l -> a/", long!(), "/", long!(), "/n.py"),
];

/// A map in whole blocks, and what is stored.
fn sparse(map: &str, stored: &[u8]) -> Vec<u8> {
    let mut content = map.as_bytes().to_vec();
    content.resize(512, 0);
    content.extend_from_slice(stored);
    content
}

/// Fields of zeros or spaces where a mode, and a size of nothing, would be.
fn without_numbers() -> Layer {
    let head = |kind: u8, path: &str, size: u64, change: fn(&mut tar::GnuHeader)| {
        let mut header = header(kind, path, 0o644, size);
        change(header.as_gnu_mut().unwrap());
        header.set_cksum();
        header
    };
    let folder = head(b'5', "a/", 0, |header| header.size = [0; 12]);
    let file = head(b'0', "n.py", 2, |header| header.mode = *b"       \0");
    let empty = head(b'0', "o.py", 0, |header| (header.mode, header.size) = ([0; 8], [b' '; 12]));
    layer().block(folder.as_bytes(), b"").block(file.as_bytes(), b"n1").block(empty.as_bytes(), b"")
}

/// GNU tar's parts fill whole blocks.
fn old_sparse() -> Layer {
    let mut header = header(b'S', "s.py", 0o644, 517);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.set_real_size(1541);
    for (part, (offset, length)) in gnu.sparse.iter_mut().zip([(512, 512), (1536, 5)]) {
        part.set_offset(offset);
        part.set_length(length);
    }
    header.set_cksum();
    let content = [&[b'a'; 512], b"bcdef".as_slice()].concat();
    layer().block(header.as_bytes(), &content).file("o.py", "o1")
}
