//! GPUs by name and by compute capability, and which code runs on them.
//!
//! Takes `gpu.toml`. Names are compared without case, separators, memory sizes and the words that the matrix calls
//! optional, so that `A100-SXM4-80GB`, `NVIDIA A100 80GB PCIe` and `a100` are one.

use super::schema::{CubinRow, GpuClass, GpuFile, GpuRow, NamesRow, ProductRow};
use crate::diag::did_you_mean;
use crate::version::{Capability, CodeKind, Cuda, GpuCode, PtxIsa};

/// A GPU of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// As the user named it.
    pub name: String,
    /// Its compute capability.
    pub capability: Capability,
    /// What it is sold as; unknown when it was named by capability.
    pub class: Option<GpuClass>,
    /// False for a capability newer than the matrix.
    pub known: bool,
}

/// Why a typed name is no GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuNameError {
    /// No such product; the nearest names.
    Unknown(Vec<String>),
    /// Several products of different capabilities go by it.
    Ambiguous(Vec<String>),
}

/// What serves a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// This SASS.
    Sass(GpuCode),
    /// This PTX, compiled by the driver at load time.
    Ptx(GpuCode),
    /// PTX that would do, but is newer than the driver compiles.
    PtxTooNew(GpuCode),
    /// Nothing.
    No,
}

/// GPUs and code.
#[derive(Debug)]
pub struct GpuFacts {
    file: GpuFile,
}

impl GpuFacts {
    pub(super) fn new(file: GpuFile) -> Self {
        Self { file }
    }

    /// The tables as they are.
    pub fn file(&self) -> &GpuFile {
        &self.file
    }

    /// The facts about a capability.
    pub fn get(&self, capability: Capability) -> Option<&GpuRow> {
        self.file.gpus.iter().find(|row| row.capability == capability)
    }

    /// The GPU that a user means by `name`: a product, `9.0` or `sm_90`.
    ///
    /// # Errors
    /// A name that is no product, or that is several of different capabilities.
    pub fn find(&self, name: &str) -> Result<Gpu, GpuNameError> {
        if let Ok(capability) = name.parse::<Capability>() {
            let known = self.get(capability).is_some();
            let newest = self.file.gpus.iter().map(|row| row.capability).max();
            // A hole below the newest is a mistyped number; above it, a GPU that the matrix has not heard of yet.
            if !known && newest.is_some_and(|newest| capability < newest) {
                return Err(GpuNameError::Unknown(self.near_capabilities(capability)));
            }
            return Ok(Gpu { name: name.trim().into(), capability, class: None, known });
        }
        let wanted = self.file.names.normal_form(name);
        let is_wanted = |name: &String| self.file.names.normal_chars(name).eq(wanted.chars());
        let ambiguous = self.file.ambiguous.iter().find(|row| is_wanted(&row.name));
        if let Some(row) = ambiguous {
            return Err(GpuNameError::Ambiguous(row.candidates.clone()));
        }
        let products = self.file.products.iter();
        let mut found: Vec<_> = products.filter(|row| row.names.iter().any(is_wanted)).collect();
        if found.is_empty() {
            found = self.by_words(name);
        }
        match found[..] {
            [] => Err(GpuNameError::Unknown(self.near_names(name))),
            [first, ref rest @ ..] if rest.iter().all(|row| row.capability == first.capability) => Ok(Gpu {
                name: name.trim().into(),
                capability: first.capability,
                class: rest.iter().all(|row| row.class == first.class).then_some(first.class),
                known: true,
            }),
            _ => Err(GpuNameError::Ambiguous(self.near_names(name))),
        }
    }

    fn near_names(&self, name: &str) -> Vec<String> {
        let capabilities = self.capabilities_of(name);
        if !capabilities.is_empty() {
            return capabilities;
        }
        let wanted = self.file.names.normal_form(name);
        let names = self.file.products.iter().flat_map(|row| &row.names);
        let score = |known: &String| {
            let form = self.file.names.normal_form(known);
            // A part of the name, such as the number alone, is nearer than any similar word; the shorter name first.
            let part = !wanted.is_empty() && form.contains(&wanted);
            if part { 2.0 - form.len() as f64 / 1000.0 } else { strsim::jaro_winkler(&wanted, &form) }
        };
        let mut scored: Vec<(f64, &String)> =
            names.map(|known| (score(known), known)).filter(|(s, _)| *s > 0.7).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.len().cmp(&b.1.len())).then(a.1.cmp(b.1)));
        scored.dedup_by(|a, b| a.1 == b.1);
        scored.into_iter().take(3).map(|(_, known)| known.clone()).collect()
    }

    /// The capabilities that go by a name which is no GPU's: an architecture (`hopper`), code (`sm_90a`, `compute_90`) or
    /// a bare number (`90`).
    fn capabilities_of(&self, name: &str) -> Vec<String> {
        let name = name.trim().to_lowercase();
        let number = ["sm_", "compute_"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(&name);
        let sm = format!("sm_{}", number.trim_end_matches(['a', 'f']));
        let is_meant = |row: &&GpuRow| {
            let architecture = row.architecture.to_lowercase();
            architecture == name || architecture.split(' ').next() == Some(&*name) || row.capability.sm() == sm
        };
        self.file.gpus.iter().filter(is_meant).map(|row| row.capability.sm()).collect()
    }

    /// Products whose names have all words of `name`: `4090` alone is good enough where they are of one capability.
    fn by_words(&self, name: &str) -> Vec<&ProductRow> {
        let words = |text: &str| -> Vec<String> {
            text.to_lowercase().split([' ', '-', '_']).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let wanted = words(name);
        // A number says which GPU it is; a word alone ("titan", "ti") does not.
        let numbered = wanted.iter().any(|word| word.bytes().filter(u8::is_ascii_digit).count() >= 3);
        let has_all = |known: &String| {
            let known = words(known);
            numbered && wanted.iter().all(|word| known.contains(word))
        };
        self.file.products.iter().filter(|row| row.names.iter().any(has_all)).collect()
    }

    fn near_capabilities(&self, capability: Capability) -> Vec<String> {
        let names: Vec<String> = self.file.gpus.iter().map(|row| row.capability.sm()).collect();
        did_you_mean(&capability.sm(), names.iter().map(String::as_str)).map(str::to_owned).into_iter().collect()
    }

    /// What of `code` serves `gpu`: the best SASS, else the best PTX.
    ///
    /// `built` is the CUDA that the code was built with, `isa` the PTX ISA of that CUDA, `driver_isa` the newest that
    /// the driver compiles (`None`: unknown driver, any).
    pub fn serve(
        &self,
        code: &[GpuCode],
        gpu: Capability,
        built: Option<Cuda>,
        isa: Option<&PtxIsa>,
        driver_isa: Option<&PtxIsa>,
    ) -> Served {
        let best = |kind: CodeKind| {
            code.iter()
                .filter(|code| code.kind == kind)
                .filter(|code| match kind {
                    CodeKind::Sass => self.sass_runs(**code, gpu, built),
                    CodeKind::Ptx => self.ptx_runs(**code, gpu),
                })
                .max_by_key(|code| (code.capability, code.suffix))
                .copied()
        };
        if let Some(sass) = best(CodeKind::Sass) {
            return Served::Sass(sass);
        }
        match (best(CodeKind::Ptx), isa, driver_isa) {
            (Some(ptx), Some(isa), Some(driver_isa)) if isa > driver_isa => Served::PtxTooNew(ptx),
            (Some(ptx), _, _) => Served::Ptx(ptx),
            (None, _, _) => Served::No,
        }
    }

    /// Whether a cubin runs on `gpu`.
    fn sass_runs(&self, code: GpuCode, gpu: Capability, built: Option<Cuda>) -> bool {
        match code.suffix {
            Some('f') => self.family_of(code).is_some_and(|serves| serves.contains(&gpu)),
            Some(_) => code.capability == gpu,
            None => self.file.cubins.iter().find(|row| row.code == code).is_some_and(|row| row.runs_on(gpu, built)),
        }
    }

    /// Whether PTX can be compiled for `gpu`: an equal or older architecture; with a suffix, that GPU or family alone.
    fn ptx_runs(&self, code: GpuCode, gpu: Capability) -> bool {
        match code.suffix {
            Some('f') => self.family_of(code).is_some_and(|serves| serves.contains(&gpu)),
            Some(_) => code.capability == gpu,
            None => code.capability <= gpu,
        }
    }

    fn family_of(&self, code: GpuCode) -> Option<&[crate::version::Capability]> {
        let sass = GpuCode { kind: CodeKind::Sass, ..code };
        self.file.families.iter().find(|row| row.code == sass).map(|row| row.serves.as_slice())
    }
}

impl NamesRow {
    /// Lower-case words without those that do not tell GPUs apart.
    pub(super) fn normal_form(&self, name: &str) -> String {
        self.normal_chars(name).collect()
    }

    /// The characters of [`NamesRow::normal_form`]: two names mostly differ in the first of them.
    fn normal_chars<'n>(&'n self, name: &'n str) -> impl Iterator<Item = char> {
        let words = name.split([' ', '-', '_', '/', '(', ')']).filter(|word| !word.is_empty());
        let memory = |word: &str| {
            let (digits, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len()));
            !digits.is_empty() && ["gb", "g"].iter().any(|known| unit.eq_ignore_ascii_case(known))
        };
        let optional = |word: &str| self.optional_words.iter().any(|o| o.eq_ignore_ascii_case(word));
        let kept = move |word: &&str| !memory(word) && !optional(word);
        // A name of optional words alone is compared as it is.
        let all = !words.clone().any(|word| kept(&word));
        words.filter(move |word| all || kept(word)).flat_map(str::chars).flat_map(char::to_lowercase)
    }
}

impl CubinRow {
    fn runs_on(&self, gpu: Capability, built: Option<Cuda>) -> bool {
        if let Some(only) = &self.only {
            return only.contains(&gpu);
        }
        let lifted = matches!((self.except_until_cuda, built), (Some(until), Some(built)) if built >= until);
        let in_range = self.from.is_some_and(|from| gpu >= from) && self.below.is_none_or(|below| gpu < below);
        in_range && (lifted || !self.except.contains(&gpu))
    }
}
