//! Variables of the job that nothing in the environment reads, though their names say that a library here should.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::variables::{Readers, Releases};
use crate::check::{Case, Claims, Outcome, Rule};
use crate::diag::{Diagnostic, Evidence, Failure, Severity, misspelt};
use crate::inventory::shown;
use crate::inventory::words::{Searched, Wanted, Words};
use crate::matrix::EnvVarFacts;
use crate::matrix::schema::{KnownVariablesRow, UnreadVariablesRow};

pub const RULE: Rule = Rule {
    code: "env-variable-unknown",
    level: Severity::Warning,
    page: include_str!("../page/env-variable-unknown.md"),
    run,
};

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let variables = &case.inventory.variables;
    if variables.is_empty() {
        return Ok(Outcome::Ran(Vec::new()));
    }
    Ok(judge(variables, &Readers::of(case), case.matrix.env_vars()?))
}

/// A variable in question.
struct Suspect<'a> {
    name: &'a str,
    why: Why<'a>,
    /// What is known of the name, if it is that nobody reads it. That it is the end of a longer text proves nothing then.
    unread: Option<&'a UnreadVariablesRow>,
}

/// Why it should be read here.
enum Why<'a> {
    /// It is of a family whose owner is here; whether that has the names without their prefix.
    Family { prefix: &'a str, bare: bool },
    /// Its name is nearly one that is known.
    Near { known: &'a str, row: &'a KnownVariablesRow },
}

fn judge(variables: &BTreeMap<String, String>, readers: &Readers<'_>, facts: &EnvVarFacts) -> Outcome {
    let mut owners: BTreeSet<Searched> = BTreeSet::new();
    let mut suspects: Vec<Suspect<'_>> = Vec::new();
    for name in variables.keys().filter(|name| is_word(name) && !facts.is_known(name) && facts.renamed(name).is_none())
    {
        let unread = facts.unread(name).filter(|row| holds(row, &readers.releases));
        if let Some((family, prefix)) = facts.family(name) {
            let files = readers.owners(family, facts);
            if !files.is_empty() {
                suspects.push(Suspect { name, why: Why::Family { prefix, bare: family.bare }, unread });
                owners.extend(files);
            }
        } else if let Some((known, row)) = facts.near_known(name) {
            suspects.push(Suspect { name, why: Why::Near { known, row }, unread });
        }
    }
    if suspects.is_empty() {
        return Outcome::Ran(Vec::new());
    }
    // First where the names should be; only for what is not there, everywhere else.
    let mut words = Words::default();
    if let Err(why) = look(readers, &owners, &mut suspects, &mut words) {
        return Outcome::Skipped(why);
    }
    if suspects.is_empty() {
        return Outcome::Ran(Vec::new());
    }
    let searched = readers.others(&owners, facts).and_then(|others| {
        look(readers, &others, &mut suspects, &mut words)?;
        Ok(owners.len() + others.len())
    });
    match searched {
        Ok(searched) => Outcome::Ran(suspects.iter().map(|one| finding(one, &words, searched)).collect()),
        Err(why) => Outcome::Skipped(why),
    }
}

/// Searches files, and leaves those variables that none of them reads.
fn look(
    readers: &Readers<'_>,
    files: &BTreeSet<Searched>,
    suspects: &mut Vec<Suspect<'_>>,
    words: &mut Words,
) -> Result<(), String> {
    let found = readers.search(files, &wanted(suspects));
    words.merge(found.found);
    suspects.retain(|suspect| !suspect.is_read(words));
    match found.unread.first_key_value() {
        Some((path, why)) if !suspects.is_empty() => {
            let names: Vec<&str> = suspects.iter().map(|suspect| suspect.name).collect();
            Err(format!("{} cannot be looked up: {}: {why}", names.join(", "), shown(path)))
        }
        _ => Ok(()),
    }
}

fn is_word(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn wanted(suspects: &[Suspect<'_>]) -> Wanted {
    let beginning = |suspect: &Suspect<'_>| match suspect.why {
        Why::Family { prefix, .. } => prefix.to_owned(),
        Why::Near { .. } => suspect.name.to_owned(),
    };
    let whole = suspects.iter().filter_map(|suspect| Some(suspect.bare_name()?.to_owned()));
    Wanted { beginnings: suspects.iter().map(beginning).collect(), whole: whole.collect() }
}

impl<'a> Suspect<'a> {
    /// As the library has it that puts the prefix before it.
    fn bare_name(&self) -> Option<&'a str> {
        match self.why {
            Why::Family { prefix, bare: true } => self.name.strip_prefix(prefix),
            _ => None,
        }
    }

    /// Whether the name is among the words, or a beginning to which a program appends the rest (`TORCH_GLOO_LAZY_`).
    fn is_read(&self, words: &Words) -> bool {
        let appended = |word: &str| match self.why {
            Why::Family { prefix, .. } => {
                word.len() > prefix.len() && word.ends_with('_') && self.name.starts_with(word)
            }
            Why::Near { .. } => false,
        };
        words.found.get(self.name).is_some_and(|mention| mention.apart || self.unread.is_none())
            || self.bare_name().is_some_and(|name| words.found.contains_key(name))
            || words.found.keys().any(|word| appended(word))
    }
}

fn finding(suspect: &Suspect<'_>, words: &Words, searched: usize) -> Diagnostic {
    let name = suspect.name;
    let seen = Evidence::observed(format!("{searched} libraries and Python files"), format!("none of them has {name}"));
    let prefix = match suspect.why {
        Why::Family { prefix, .. } => prefix,
        Why::Near { known, row } => {
            let message = format!("nothing here reads {name}; {} reads {known}", row.reader);
            let fact = Evidence::fact(format!("{} reads {known}", row.reader), &row.source);
            let note = Diagnostic::note(RULE.code, message, seen).about(name).and(fact);
            return note.fix(format!("did you mean {known}?"));
        }
    };
    let message = format!("{name} has no effect: no library and no Python file here reads it");
    let finding = Diagnostic::warning(RULE.code, message, seen).about(name);
    if let Some(row) = suspect.unread {
        let finding = finding.and(Evidence::fact(format!("{name}: {}", row.reason), &row.source));
        return finding.fix(row.instead.clone().unwrap_or_else(|| format!("remove {name}")));
    }
    let family = words.found.keys().filter(|word| word.starts_with(prefix) && !word.ends_with('_'));
    match misspelt(name, family.map(String::as_str)) {
        Some(near) => {
            let has = Evidence::observed(shown(&words.found[near].path), format!("has {near}"));
            finding.and(has).fix(format!("did you mean {near}?"))
        }
        None => finding.fix(format!("remove {name}; if the job's own code reads it, say so in [checks]")),
    }
}

/// Whether what is known of an unread name is so for the releases that are installed.
pub fn holds(row: &UnreadVariablesRow, releases: &Releases) -> bool {
    match (row.reader, &row.until) {
        (Some(reader), Some(until)) => releases.of(reader).iter().all(|release| release > until),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::Root;
    use crate::matrix::Matrix;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A library with these texts among its constants, each ended by a NUL.
    fn library(path: &Path, texts: &[&str]) {
        use object::write::{Object, StandardSection};
        let mut object =
            Object::new(object::BinaryFormat::Elf, object::Architecture::X86_64, object::Endianness::Little);
        let section = object.section_id(StandardSection::ReadOnlyData);
        object.append_section_data(section, format!("{}\0", texts.join("\0")).as_bytes(), 1);
        file(path, &object.write().unwrap());
    }

    fn file(path: &Path, bytes: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// torch 2.8 with NCCL 2.27, cut down to what reads variables.
    fn environment(site: &Path) {
        library(
            &site.join("nvidia/nccl/lib/libnccl.so.2"),
            &[
                "NCCL_DEBUG",
                "NCCL_SOCKET_IFNAME",
                "set NCCL_MESSAGE to x",
                "NCCL_DEBUG_SUBSYS",
                "_DEFAULT_NCCL_TIMEOUT",
            ],
        );
        library(
            &site.join("nvidia/nvshmem/lib/libnvshmem_host.so.3"),
            &["SYMMETRIC_SIZE", "NVSHMEM_SYMMETRIC_SIZE %lu"],
        );
        library(
            &site.join("torch/lib/libtorch_cpu.so"),
            &["constantTORCH_CPP_LOG_LEVEL", "TORCH_NCCL_BLOCKING_WAIT", "TORCH_GLOO_LAZY_", "NCCL_ENABLE_TIMING"],
        );
        file(&site.join("torch/_inductor/config.py"), b"x = os.environ.get('TORCHINDUCTOR_FREEZING') # TORCH_NCCL_*\n");
        file(&site.join("torch/nn/parallel/distributed.py"), b"names = ['NCCL_DEBUG', 'NCCL_RINGS']\n");
        file(&site.join("deepspeed/comm.py"), b"timeout = os.environ['NCCL_OWN_TIMEOUT']\n");
        library(&site.join("deepspeed/ops.so"), &["NCCL_OWN_OPS"]);
    }

    fn judged(site: &Path, names: &[&str]) -> Outcome {
        let (root, matrix) = (Root::new("/"), Matrix::embedded());
        let mut libraries = BTreeMap::new();
        let mut folders = vec![site.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
                let name = entry.file_name().into_string().unwrap();
                let package = entry.path().starts_with(site.join("torch")).then(|| "torch".to_owned());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else if name.ends_with(".so") || name.contains(".so.") {
                    libraries.insert(entry.path(), package);
                }
            }
        }
        let readers = Readers {
            root: &root,
            libraries,
            packages: vec![("torch".into(), site.to_owned())],
            site_packages: vec![site.to_owned()],
            releases: Releases { torch: ["2.8.0".parse().unwrap()].into(), nccl: ["2.27.3".parse().unwrap()].into() },
        };
        let variables = names.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
        judge(&variables, &readers, matrix.env_vars().unwrap())
    }

    /// Each finding by its variable, severity and fix.
    fn findings(outcome: Outcome) -> Vec<(String, Severity, String)> {
        let Outcome::Ran(findings) = outcome else { panic!("{outcome:?}") };
        findings.into_iter().map(|one| (one.subject.unwrap(), one.severity, one.fix.unwrap())).collect()
    }

    /// A folder whose own path has no links, as inventories have them.
    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let site = folder.path().canonicalize().unwrap().join("site-packages");
        environment(&site);
        (folder, site)
    }

    #[test]
    fn fires() {
        use Severity::{Note, Warning};
        let (_folder, site) = folder();
        for (name, severity, fix) in [
            ("NCCL_DEBUGG", Warning, "did you mean NCCL_DEBUG?"),
            ("NCCL_SOCKET_IFACE", Warning, "did you mean NCCL_SOCKET_IFNAME?"),
            // Part of a message, which is no name.
            ("NCCL_MESSAGE", Warning, "remove NCCL_MESSAGE; if the job's own code reads it, say so in [checks]"),
            ("NCCL_TIMEOUT", Warning, "pass timeout= to torch.distributed.init_process_group"),
            ("NCCL_LL_THRESHOLD", Warning, "set NCCL_PROTO"),
            // Only where names are listed to be printed.
            ("NCCL_RINGS", Warning, "remove NCCL_RINGS"),
            ("TORCH_NCCL_BLOCKING_WAITS", Warning, "did you mean TORCH_NCCL_BLOCKING_WAIT?"),
            ("TORCHINDUCTOR_FREZING", Warning, "did you mean TORCHINDUCTOR_FREEZING?"),
            ("TORCH_USE_CUDA_DSA", Warning, "set PYTORCH_USE_CUDA_DSA, with a torch that was built with it"),
            (
                "NVSHMEM_SYMETRIC_SIZE",
                Warning,
                "remove NVSHMEM_SYMETRIC_SIZE; if the job's own code reads it, say so in [checks]",
            ),
            ("CUDA_VISIBLE_DEVICE", Note, "did you mean CUDA_VISIBLE_DEVICES?"),
            ("CUBLAS_WORKSPACE_CONFG", Note, "did you mean CUBLAS_WORKSPACE_CONFIG?"),
        ] {
            assert_eq!(findings(judged(&site, &[name])), [(name.to_owned(), severity, fix.to_owned())]);
        }
    }

    #[test]
    fn stays_quiet() {
        let (_folder, site) = folder();
        let names = [
            "NCCL_DEBUG",
            // The end of another constant.
            "TORCH_CPP_LOG_LEVEL",
            "NCCL_BLOCKING_WAIT",
            "NCCL_ENABLE_TIMING",
            // What a program appends to.
            "TORCH_GLOO_LAZY_INIT",
            "TORCHINDUCTOR_FREEZING",
            // Read by another package.
            "NCCL_OWN_TIMEOUT",
            "NCCL_OWN_OPS",
            "NVSHMEM_SYMMETRIC_SIZE",
            // Read where nobody can look.
            "CUDA_VISIBLE_DEVICES",
            "CUDNN_LOGLEVEL_DBG",
            "NCCL_IBEXT_DISABLE",
            "CUDA_HOME",
            // Of nobody here.
            "MY_VARIABLE",
            "LD_LIBRARY_PATH",
            "not a name",
        ];
        assert_eq!(findings(judged(&site, &names)), []);
    }

    #[test]
    fn without_its_owner_nothing_is_said() {
        let (_folder, site) = folder();
        fs::remove_file(site.join("nvidia/nccl/lib/libnccl.so.2")).unwrap();
        fs::remove_file(site.join("torch/_inductor/config.py")).unwrap();
        fs::remove_file(site.join("torch/nn/parallel/distributed.py")).unwrap();
        assert_eq!(findings(judged(&site, &["NCCL_DEBUGG", "TORCH_NCCL_BLOCKING_WAITS"])), []);
    }

    #[test]
    fn what_cannot_be_searched_is_no_evidence() {
        let (_folder, site) = folder();
        fs::write(site.join("deepspeed/ops.so"), b"\x7fELF, cut off").unwrap();
        let outcome = judged(&site, &["NCCL_DEBUGG"]);
        assert!(matches!(&outcome, Outcome::Skipped(why) if why.contains("ops.so") && why.contains("NCCL_DEBUGG")));
        // What is found before is not looked for there.
        assert_eq!(findings(judged(&site, &["NCCL_DEBUG"])), []);
    }

    /// Read by torch 2.3 and later, and by NCCL 2.20 and later.
    const READ: [&str; 24] = [
        "CUDA_LAUNCH_BLOCKING",
        "CUDA_VISIBLE_DEVICES",
        "NCCL_ALGO",
        "NCCL_ASYNC_ERROR_HANDLING",
        "NCCL_BUFFSIZE",
        "NCCL_COMM_ID",
        "NCCL_CUMEM_ENABLE",
        "NCCL_DEBUG",
        "NCCL_DEBUG_FILE",
        "NCCL_IB_HCA",
        "NCCL_IB_QPS_PER_CONNECTION",
        "NCCL_IGNORE_CPU_AFFINITY",
        "NCCL_MAX_NRINGS",
        "NCCL_NET_GDR_LEVEL",
        "NCCL_P2P_DISABLE",
        "NCCL_SOCKET_IFNAME",
        "NCCL_TOPO_FILE",
        "PYTORCH_CUDA_DSA_STACKTRACING",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "TORCH_CPP_LOG_LEVEL",
        "TORCH_DISTRIBUTED_DEBUG",
        "TORCH_LOGS",
        "TORCH_NCCL_DUMP_ON_TIMEOUT",
        "TORCH_SHOW_CPP_STACKTRACES",
    ];

    /// Virtual environments with torch 2.3 or later, named by `GPULOCK_TEST_ENVIRONMENTS` as PATH has them.
    #[test]
    fn real_environments() {
        let named = std::env::var("GPULOCK_TEST_ENVIRONMENTS").unwrap_or_default();
        for environment in std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()) {
            let lib = environment.canonicalize().unwrap().join("lib");
            let python = fs::read_dir(lib).unwrap().map(|entry| entry.unwrap().path());
            let site = python.map(|folder| folder.join("site-packages")).find(|folder| folder.is_dir()).unwrap();
            assert_eq!(findings(judged(&site, &READ)), [], "{}", environment.display());
            let wrong = [
                "CUDA_VISIBLE_DEVICE",
                "NCCL_DEBUGG",
                "NCCL_IB_HCAS",
                "NCCL_RINGS",
                "NCCL_TIMEOUT",
                "TORCH_USE_CUDA_DSA",
            ];
            let found: Vec<String> = findings(judged(&site, &wrong)).into_iter().map(|(name, ..)| name).collect();
            assert_eq!(found, wrong, "{}", environment.display());
        }
    }
}
