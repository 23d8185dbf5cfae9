//! Reads a subject: takes a path, gives its [`Inventory`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::image::Image;
use super::model::Known;
use super::startup::Started;
use super::subject::{self, Subject, SubjectKind};
use super::walk::{self, Candidate, Start, Walked};
use super::{
    Distribution, DriverFile, Inventory, Library, Loader, Options, PythonEnvironment, PythonKind, Role, Root, Trouble,
    apptainer, conda, distribution, driver, library, parallel, python, shown, startup, wheel,
};
use crate::diag::Failure;

impl Inventory {
    /// Reads what `given` holds: a virtual environment, a site-packages folder, a conda environment, a root filesystem,
    /// an ELF file or a wheel.
    ///
    /// # Errors
    /// Only when the subject itself cannot be read or is nothing of these; what cannot be read in it is in
    /// [`Inventory::troubles`] or in the library's own [`Library::object`](super::Library::object).
    pub fn read(given: &Path, options: &Options) -> Result<Self, Failure> {
        let threads = parallel::threads(options.jobs);
        let (mut subject, root) = subject::find(given)?;
        let mut unpacked = None;
        if subject.kind == SubjectKind::Wheel {
            let folder = wheel::unpack(given, &subject.path, threads)?;
            // The folder for temporary files may be a link.
            subject.path = root.resolve(folder.path()).unwrap_or_else(|_| folder.path().to_owned());
            unpacked = Some(folder);
        }
        // Apptainer's sandbox is a folder.
        let said = if subject.kind.is_root() { apptainer::read(&root) } else { Default::default() };
        let mut variables = said.variables;
        variables.extend(options.variables.clone());
        let apptainer = subject.kind.is_root() && apptainer::is_there(&root);
        let started = Started { command: &said.command, folder: None };
        Ok(Self { apptainer, ..Self::of(subject, root, unpacked, threads, variables, started) })
    }

    /// Reads the files of an image; the variables of its configuration come before those of `options`.
    pub fn of_image(mut image: Image, options: &Options) -> Self {
        let given = PathBuf::from(&image.given);
        let subject = Subject { kind: SubjectKind::Image, given, path: PathBuf::from("/") };
        let root = Root::of_image(Arc::clone(&image.tree));
        let apptainer = image.config.is_silent() && apptainer::is_there(&root);
        if apptainer {
            let said = apptainer::read(&root);
            image.config.variables = said.variables;
            image.config.labels = said.labels;
            image.config.command = said.command;
            let line = |(file, line)| format!("the line `{line}` of {file}, which is no plain assignment");
            image.unread.extend(said.unread.into_iter().map(line));
        }
        let mut variables = image.config.variables.clone();
        variables.extend(options.variables.clone());
        let threads = parallel::threads(options.jobs);
        let started = Started { command: &image.config.command, folder: image.config.folder.as_deref() };
        let inventory = Self::of(subject, root, None, threads, variables, started);
        Self { image: Some(image), apptainer, ..inventory }
    }

    fn of(
        subject: Subject,
        root: Root,
        unpacked: Option<tempfile::TempDir>,
        threads: usize,
        variables: BTreeMap<String, String>,
        started: Started<'_>,
    ) -> Self {
        let mut pythons = pythons(&root, &subject);
        let added = startup::folders(&root, &variables);
        if subject.kind.has_python() {
            startup::import_from(&root, &mut pythons, &added);
        }
        let walked = match subject.kind {
            SubjectKind::Library => single(&subject),
            kind => walk::walk(&root, &starts(&subject, &pythons), kind.is_root(), threads),
        };
        if subject.kind.is_root() {
            pythons = python::of_marks(&root, &walked.marks);
            startup::order(&root, &mut pythons, started, &variables);
            startup::import_from(&root, &mut pythons, &added);
        }
        let mut troubles = walked.troubles;
        let (packages, more) = packages(&root, &pythons, threads);
        troubles.extend(more);
        let (mut libraries, more) = library::read(&root, &walked.candidates, threads);
        troubles.extend(more);
        let names = Names::new(&subject, &pythons);
        let (loader, driver, more) = settle(&mut libraries, &root, &packages, &names);
        troubles.extend(more);
        for trouble in &mut troubles {
            trouble.name = names.of(&trouble.path);
        }
        let libraries = library::share(libraries);
        Self {
            known: Known::new(&libraries),
            variables,
            image: None,
            subject,
            root,
            pythons,
            packages,
            loader,
            driver,
            apptainer: false,
            troubles,
            libraries,
            process: None,
            _unpacked: unpacked,
        }
    }
}

/// The environments that the subject itself says; those of a root filesystem are found on the walk.
fn pythons(root: &Root, subject: &Subject) -> Vec<PythonEnvironment> {
    match subject.kind {
        SubjectKind::Venv => vec![python::venv(root, &subject.path)],
        SubjectKind::Conda => vec![python::conda(root, &subject.path)],
        SubjectKind::SitePackages => vec![python::of_site(root, &subject.path)],
        SubjectKind::Wheel => vec![python::of_site(root, &subject.path.join(wheel::SITE))],
        // One library is judged in the environment that it lies in.
        SubjectKind::Library => {
            let site = subject.path.ancestors().find(|folder| python::is_site(folder));
            site.map(|site| python::of_site(root, site)).into_iter().collect()
        }
        SubjectKind::RootFilesystem | SubjectKind::Image | SubjectKind::Process | SubjectKind::Core => Vec::new(),
    }
}

/// Where the walk begins: the subject's folder, and folders of packages that lie elsewhere.
fn starts(subject: &Subject, pythons: &[PythonEnvironment]) -> Vec<Start> {
    let packages = subject.kind == SubjectKind::SitePackages;
    let mut starts = vec![Start { folder: subject.path.clone(), packages }];
    for site in pythons.iter().flat_map(|python| &python.site_packages) {
        let inside =
            starts.iter().any(|start| site.starts_with(&start.folder) && (start.packages || python::is_site(site)));
        if !inside {
            starts.push(Start { folder: site.clone(), packages: true });
        }
    }
    starts
}

/// One file, where the user has it: a link to it may lie in another folder, and `$ORIGIN` is that.
fn single(subject: &Subject) -> Walked {
    let folder = subject.given.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = folder.canonicalize().ok().zip(subject.given.file_name()).map(|(folder, name)| folder.join(name));
    let place = place.unwrap_or_else(|| subject.path.clone());
    let candidate = Candidate { place, role: Role::Library, certain: true, link: true };
    Walked { candidates: vec![candidate], ..Walked::default() }
}

pub(super) fn packages(
    root: &Root,
    pythons: &[PythonEnvironment],
    threads: usize,
) -> (Vec<Distribution>, Vec<Trouble>) {
    let mut sites: Vec<PathBuf> = Vec::new();
    for site in pythons.iter().flat_map(|python| &python.site_packages) {
        if !sites.contains(site) {
            sites.push(site.clone());
        }
    }
    let (mut packages, mut troubles) = distribution::read(root, &sites, threads);
    for python in pythons.iter().filter(|python| python.kind == PythonKind::Conda) {
        let (more, trouble) = conda::read(root, &python.prefix, threads);
        packages.extend(more);
        troubles.extend(trouble);
    }
    (packages, troubles)
}

/// Gives libraries their packages and names, and reads what the loader and the driver of their root are.
pub(super) fn settle(
    libraries: &mut [Library],
    root: &Root,
    packages: &[Distribution],
    names: &Names<'_>,
) -> (Loader, Vec<DriverFile>, Vec<Trouble>) {
    distribution::assign(libraries, packages);
    let (loader, troubles) = Loader::read(root);
    let driver = driver::find(root, &loader, libraries);
    for library in libraries {
        library.name = names.of(&library.place);
    }
    (loader, driver, troubles)
}

/// How reports name files: relative to the folder of packages or to the subject that they lie in.
pub(super) struct Names<'a> {
    folders: Vec<&'a Path>,
}

impl<'a> Names<'a> {
    pub(super) fn new(subject: &'a Subject, pythons: &'a [PythonEnvironment]) -> Self {
        let mut folders: Vec<&Path> = match subject.kind {
            // Its files have their own names.
            kind if kind.is_root() => Vec::new(),
            _ => pythons.iter().flat_map(|python| &python.site_packages).map(PathBuf::as_path).collect(),
        };
        if !subject.kind.is_root() && subject.kind != SubjectKind::Library {
            folders.push(&subject.path);
        }
        // The innermost first.
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.as_os_str().len()));
        Self { folders }
    }

    pub(super) fn of(&self, path: &Path) -> String {
        let below = self.folders.iter().find_map(|folder| path.strip_prefix(folder).ok());
        shown(below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(path))
    }
}
