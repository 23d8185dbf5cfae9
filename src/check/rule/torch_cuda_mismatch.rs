//! torchvision or torchaudio of another CUDA than torch's: they refuse when they are imported.

use crate::check::{Case, Claims, Outcome, Rule, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::Distribution;
use crate::link::{LinkModel, Problem};
use crate::matrix::Matrix;
use crate::matrix::schema::CudaDigits;
use crate::python::Platform;
use crate::version::Cuda;

pub const RULE: Rule = Rule {
    code: "torch-cuda-mismatch",
    level: Severity::Error,
    page: include_str!("../page/torch-cuda-mismatch.md"),
    run,
};

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let Some(torch) = stack::distribution(case.inventory, "torch") else { return Ok(Outcome::Ran(Vec::new())) };
    let Some((torch_label, torch_cuda)) = built_for(case.matrix, torch)? else { return Ok(Outcome::Ran(Vec::new())) };
    let packages = case.matrix.package()?;
    let mut findings = Vec::new();
    for (at, package) in case.inventory.packages.iter().enumerate() {
        // A process that has nothing of a package does not import it.
        let is_loaded = || case.inventory.libraries().iter().any(|library| library.package == Some(at));
        if case.inventory.process.is_some() && !is_loaded() {
            continue;
        }
        let Some(version) = package.pep440().filter(|_| !fails_to_load(case.links, at)) else { continue };
        let Some(row) = packages.same_cuda(&package.name, &version) else { continue };
        let Some((label, cuda)) = built_for(case.matrix, package)? else { continue };
        let is_same = match row.digits {
            CudaDigits::Major => cuda.major == torch_cuda.major,
            CudaDigits::Minor => cuda == torch_cuda,
        };
        if is_same {
            continue;
        }
        let message = format!(
            "{} {} is built for CUDA {cuda} and torch {} for {torch_cuda}: `import {}` fails with \"{}\"",
            package.name, package.version, torch.version, package.name, row.says
        );
        let seen = |of: &Distribution, label: &str| {
            Evidence::observed(format!("{}/version.py", of.name), format!("the build is {label}"))
        };
        let finding = Diagnostic::error(RULE.code, message, seen(package, &label)).about(package.name.to_string());
        let finding = finding.and(seen(torch, &torch_label)).and(Evidence::fact(row.says.as_str(), &row.source));
        findings.push(finding.fix(format!(
            "install the {} of the index that torch is from: its builds for {torch_label}",
            package.name
        )));
    }
    Ok(Outcome::Ran(findings))
}

/// Whether a library of the package does not load: then it does not come to comparing, and another rule says why.
fn fails_to_load(links: &LinkModel, package: usize) -> bool {
    let problems = links.contexts.iter().flat_map(|context| &context.problems);
    let mut by = problems.filter(|problem| problem.optional().is_none()).filter_map(Problem::by);
    by.any(|library| library.package == Some(package))
}

/// The variant that a package was built as, and its CUDA.
fn built_for(matrix: &Matrix, package: &Distribution) -> Result<Option<(String, Cuda)>, Failure> {
    let of_version = package.version.split_once('+').map(|(_, label)| label);
    let Some(label) = of_version.or(package.build.as_deref()) else { return Ok(None) };
    let torch = matrix.torch()?;
    // What a variant stands for is looked up, never computed from its name.
    let mut builds = [Platform::LinuxX86_64, Platform::LinuxAarch64].into_iter().flat_map(|on| torch.builds(on));
    let cuda = builds.find_map(|build| build.row().cuda.filter(|_| build.row().variant == label));
    Ok(cuda.map(|cuda| (label.to_owned(), cuda)))
}
