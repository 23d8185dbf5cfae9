//! Takes a folder, writes into it for each target the sound files that fuzzing begins with.

#[allow(dead_code, unused_imports)]
#[path = "../it/elf/fatbin.rs"]
mod fatbin;
#[allow(dead_code)]
#[path = "../it/elf/make.rs"]
mod make;
#[path = "../it/elf/rich.rs"]
mod rich;
mod images;

use std::io::{Cursor, Write};
use std::path::Path;
use std::{env, fs};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const METADATA: &[u8] =
    b"Name: x\r\nVersion: 1\r\nSummary: a\r\n b\r\nRequires-Dist: y>=1; extra == 'a'\r\n\r\nText\r\n";
const RECORD: &[u8] =
    b"x/libx.so,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,64\n\"a,\"\"b/liby.so.1\",,\n../../bin/z,,3\n";

fn main() {
    let folder = env::args_os().nth(1).expect("the folder of the corpora");
    let write = |target: &str, seeds: Vec<Vec<u8>>| {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder).expect("a folder");
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed).expect("room for a file");
        }
    };
    write("elf", rich::all());
    write("fatbin", rich::containers());
    let wheels = [SimpleFileOptions::default(), SimpleFileOptions::default().large_file(true)];
    write("wheel", wheels.map(wheel).to_vec());
    write("environment", descriptions());
    write("image", images::all());
}

fn wheel(options: SimpleFileOptions) -> Vec<u8> {
    let mut wheel = ZipWriter::new(Cursor::new(Vec::new()));
    let library = rich::rich(make::Table::Gnu);
    let members = [
        ("x-1.dist-info/METADATA", METADATA),
        ("x-1.dist-info/RECORD", RECORD),
        ("x/libx.so", &library),
        ("x-1.data/purelib/y.so", &library),
    ];
    for (name, bytes) in members {
        wheel.start_file(name, options).expect("a member");
        wheel.write_all(bytes).expect("its bytes");
    }
    wheel.finish().expect("a wheel").into_inner()
}

/// Each behind the number by which the target knows what it is.
fn descriptions() -> Vec<Vec<u8>> {
    let files: [&[u8]; 10] = [
        METADATA,
        RECORD,
        br#"{"url": "https://u:p@host/w.whl", "archive_info": {}}"#,
        METADATA,
        b"# a\nimport b\n../more\n/opt\n",
        br#"{"name": "_x", "version": "1", "build": "h", "channel": "c", "depends": ["y >=1"], "files": ["lib/x.so"], "paths_data": {"paths": [{"_path": "lib/x.so", "sha256": "00", "sha256_in_prefix": null, "size_in_bytes": 3}]}}"#,
        b"home = /usr/bin\nversion_info = 3.11.7.final.0\ninclude-system-site-packages = true\n",
        b"include ld.so.conf.d/*.conf\n/opt/lib # a\n/b=libc6\nhwcap 1 x\n",
        b"/opt/lib/a.so b.so:c.so\n",
        b"\0/lib/\0/usr/lib/\0x",
    ];
    let cache = fs::read("/etc/ld.so.cache").unwrap_or_default();
    let files = files.into_iter().chain([&cache[..cache.len().min(64 << 10)]]);
    files.enumerate().map(|(number, bytes)| [&[number as u8], bytes].concat()).collect()
}
