//! What `gpulock inspect` counts of GPU code, beside the cuobjdump that the environment's triton brings, in the
//! environments of `link`.
//!
//! `-all` makes cuobjdump list both sections. It names no family: `sm_100f` is `sm_100` to it. A file that it cannot read
//! is counted and not compared: 12.3 fails on libcublas of 12.8, 13.1 on libcufile. 12.8 names five cubins of libcublas for
//! 5.0, 6.0 and 6.1 `sm_50a` and so on, which 13.1 does not: there is no such architecture, and `a` begins with 9.0.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use walkdir::WalkDir;

use crate::link::environments;
use crate::run::{folder, gpulock, stdout, timed};

/// How often each code occurs, by its name.
type Counts = BTreeMap<String, u64>;

/// What cuobjdump lists; the reason where it gives up.
fn listed(tool: &Path, file: &Path, form: &str) -> Result<Counts, String> {
    let output = Command::new(tool).args(["-all", form]).arg(file).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if let Some(line) = said.lines().find(|line| line.contains("fatal") || line.contains("error")) {
        return Err(line.to_owned());
    }
    let mut counts = Counts::new();
    // `ELF file    1: libx.so.1.sm_90a.cubin`, `PTX file    1: libx.so.1.sm_90.ptx`.
    let lists = |line: &&str| line.starts_with("ELF file ") || line.starts_with("PTX file ");
    for name in said.lines().filter(lists).filter_map(|line| line.rsplit('.').nth(1)) {
        *counts.entry(plain(name)).or_default() += 1;
    }
    Ok(counts)
}

/// The name of a code as both have it.
fn plain(name: &str) -> String {
    let number = name.trim_start_matches("compute_").trim_start_matches("sm_").trim_end_matches('f');
    let first_with_suffix = 90;
    match number.strip_suffix('a').and_then(|digits| digits.parse::<u32>().ok()) {
        Some(digits) if digits < first_with_suffix => digits.to_string(),
        _ => number.to_owned(),
    }
}

/// What inspect counts in the same sections.
fn inspected(file: &Value, form: &str) -> Counts {
    let mut counts = Counts::new();
    for (name, count) in file["gpu_code"][form].as_object().into_iter().flatten() {
        *counts.entry(plain(name)).or_default() += count.as_u64().unwrap();
    }
    counts
}

fn libraries(environment: &Path) -> (Vec<PathBuf>, Option<PathBuf>) {
    let files = WalkDir::new(environment).into_iter().filter_map(Result::ok);
    let files: Vec<PathBuf> =
        files.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect();
    let tool = files.iter().find(|path| path.ends_with("bin/cuobjdump")).cloned();
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".so") || name.contains(".so.")
    };
    (files.into_iter().filter(named).collect(), tool)
}

#[test]
fn network_every_library_has_the_codes_that_cuobjdump_lists() {
    let place = folder();
    let mut differ = Vec::new();
    for environment in environments() {
        let (files, tool) = libraries(&environment);
        let Some(tool) = tool else {
            println!("{}: it has no cuobjdump to compare with", environment.display());
            continue;
        };
        let mut inspect = gpulock(place.path(), &place.path().join("cache"));
        inspect.args(["inspect", "--format", "json"]).args(&files);
        let (report, took) = timed(|| stdout(&mut inspect));
        let report: Value = serde_json::from_str(&report).unwrap();
        let inspected_files = report["files"].as_array().unwrap();
        assert_eq!(inspected_files.len(), files.len());
        let (mut equal, mut given_up, mut total) = (0, Vec::new(), [0, 0]);
        let (_, tool_took) = timed(|| {
            for (file, own) in files.iter().zip(inspected_files) {
                for (i, (form, flag)) in [("sass", "--list-elf"), ("ptx", "--list-ptx")].into_iter().enumerate() {
                    let ours = inspected(own, form);
                    match listed(&tool, file, flag) {
                        Err(why) => given_up.push(format!("{}: {why}", file.display())),
                        Ok(theirs) if theirs == ours => equal += 1,
                        Ok(theirs) => {
                            differ.push(format!("{} {form}: {ours:?}, cuobjdump {theirs:?}", file.display()));
                        }
                    }
                    total[i] += ours.values().sum::<u64>();
                }
            }
        });
        println!(
            "{}: {} libraries, {} SASS and {} PTX; {equal} lists equal, {} that cuobjdump cannot make; {:.3} s, cuobjdump {:.1} s",
            environment.display(),
            files.len(),
            total[0],
            total[1],
            given_up.len(),
            took.as_secs_f64(),
            tool_took.as_secs_f64()
        );
        given_up.iter().for_each(|file| println!("   {file}"));
        // A tool that read nothing would agree with everything.
        assert!(total[0] > 0 && equal > files.len(), "nothing was compared");
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}
