//! Values that an input could have instead, nearest first, upward and downward.

use super::candidate::Candidate;
use super::repair::without;
use super::{Context, Input, Request};
use crate::diag::Failure;
use crate::manifest::{Ask, PythonAsk};
use crate::python::{PackageName, Platform, PythonVersion};
use crate::version::pep440::VersionSpecifier;
use crate::version::{Constrained, Constraint, ConstraintOperator, Driver, Family, Pep440, Specifiers};

/// A changed request and how the change is written.
#[derive(Debug, Clone)]
pub struct Change {
    /// `torch >=2.7`
    pub text: String,
    /// The request with it.
    pub request: Request,
    value: Value,
    upward: bool,
}

/// The value that an input was given.
#[derive(Debug, Clone)]
enum Value {
    Version(Pep440),
    Driver(Driver),
    Python(PythonVersion),
    Cudnn(crate::version::Cudnn),
    Nccl(crate::version::Nccl),
    Cuda(crate::version::Cuda),
    Glibc(crate::version::Glibc),
    /// Nothing looser can be said of it.
    Final,
}

/// The values to try for an input: one list a direction, nearest first.
pub fn changes(
    request: &Request,
    input: &Input,
    candidates: &[Candidate],
    context: &Context<'_>,
) -> Result<Vec<Vec<Change>>, Failure> {
    let build = |candidate: &Candidate| candidate.build.clone();
    let stack = &request.stack;
    Ok(match input {
        Input::Torch => {
            let mut versions: Vec<Pep440> =
                candidates.iter().map(Candidate::public).filter(Pep440::is_stable).collect();
            versions.dedup();
            versions_around(request, input, &versions, stack.torch.as_ref())
        }
        Input::Package(name) => {
            let index = request.pinned_index(name).unwrap_or(context.default_index);
            let all = context.catalog.versions(index, name)?;
            let mut versions: Vec<Pep440> =
                all.iter().filter(|v| v.is_stable()).map(|v| v.clone().without_local()).collect();
            versions.dedup();
            versions_around(request, input, &versions, specifiers_of(request, name).as_ref())
        }
        Input::Driver => drivers(request, context)?,
        Input::Cuda => {
            let known: Vec<_> = context.matrix.cuda()?.cudas.iter().map(|file| file.cuda).collect();
            around(request, input, known, stack.cuda.as_ref(), Value::Cuda)
        }
        Input::Cudnn => {
            let mut known: Vec<_> = candidates.iter().filter_map(|c| build(c)?.row().cudnn.clone()).collect();
            known.sort();
            known.dedup();
            around(request, input, known, stack.cudnn.as_ref(), Value::Cudnn)
        }
        Input::Nccl => {
            let mut known: Vec<_> = candidates.iter().filter_map(|c| build(c)?.row().nccl.clone()).collect();
            known.sort();
            known.dedup();
            around(request, input, known, stack.nccl.as_ref(), Value::Nccl)
        }
        Input::Glibc => {
            let mut known: Vec<_> = candidates.iter().filter_map(|c| build(c)?.row().glibc.clone()).collect();
            known.extend(
                context
                    .matrix
                    .cudnn()?
                    .iter()
                    .flat_map(|f| &f.releases)
                    .flat_map(|r| &r.builds)
                    .filter_map(|b| b.glibc.clone()),
            );
            known.sort();
            known.dedup();
            let current = request.target.glibc.clone();
            let higher = known.into_iter().filter(|glibc| current.as_ref().is_none_or(|current| glibc > current));
            vec![higher.map(|glibc| change(request, input, Value::Glibc(glibc), true)).collect()]
        }
        Input::Python => {
            let mut known: Vec<PythonVersion> =
                candidates.iter().filter_map(|c| build(c)?.row().pythons()).flatten().collect();
            known.sort();
            known.dedup();
            known.retain(|python| !python.free_threaded);
            let lowest = known.iter().find(|python| allows(stack.python.as_ref(), **python)).copied();
            let highest = known.iter().rev().find(|python| allows(stack.python.as_ref(), **python)).copied();
            let (lowest, highest) = match (&stack.python, lowest, highest) {
                (Some(PythonAsk::Exact(exact)), _, _) => (Some(*exact), Some(*exact)),
                (_, lowest, highest) => (lowest, highest),
            };
            let up = known.iter().filter(|p| highest.is_none_or(|highest| **p > highest));
            let down = known.iter().rev().filter(|p| lowest.is_none_or(|lowest| **p < lowest));
            vec![
                up.map(|python| change(request, input, Value::Python(*python), true)).collect(),
                down.map(|python| change(request, input, Value::Python(*python), false)).collect(),
            ]
        }
        Input::Variant => {
            let mut labels: Vec<_> = candidates.iter().filter_map(|c| Some((c.cuda()?, c.variant()?))).collect();
            labels.sort();
            labels.dedup();
            let asked = stack.variant.clone().unwrap_or_default();
            let number = |label: &str| label.trim_start_matches("cu").parse::<u32>().unwrap_or(0);
            let named = |label: &String| Change {
                text: format!("variant = \"{label}\""),
                request: {
                    let mut r = request.clone();
                    r.stack.variant = Some(label.clone());
                    r
                },
                value: Value::Final,
                upward: true,
            };
            let labels: Vec<String> = labels.into_iter().map(|(_, label)| label).collect();
            vec![
                labels.iter().filter(|l| number(l) > number(&asked)).map(named).collect(),
                labels.iter().rev().filter(|l| number(l) < number(&asked)).map(named).collect(),
            ]
        }
        Input::Gpu(name) if request.target.gpus.len() > 1 => {
            let text = format!("gpus without {name} (another target can hold it)");
            vec![vec![Change { text, request: without(request, input), value: Value::Final, upward: true }]]
        }
        Input::Gpu(name) => vec![other_platform(request, name, context)?.into_iter().collect()],
    })
}

/// A system on chip that was put on the wrong platform.
fn other_platform(request: &Request, gpu: &str, context: &Context<'_>) -> Result<Option<Change>, Failure> {
    let facts = context.matrix.gpu()?;
    let row = facts.find(gpu).ok().and_then(|gpu| facts.get(gpu.capability));
    let wrong = row.is_some_and(|row| row.tegra) && request.target.platform != Platform::LinuxAarch64;
    Ok(wrong.then(|| {
        let mut changed = request.clone();
        changed.target.platform = Platform::LinuxAarch64;
        let text = format!("platform = \"{}\"", Platform::LinuxAarch64);
        Change { text, request: changed, value: Value::Final, upward: true }
    }))
}

fn allows(asked: Option<&PythonAsk>, python: PythonVersion) -> bool {
    asked.is_none_or(|asked| asked.allows(python))
}

/// What the user asks of a package.
fn specifiers_of(request: &Request, name: &PackageName) -> Option<Specifiers> {
    let stack = &request.stack;
    match name.as_str() {
        "torchvision" if stack.torchvision.is_some() => stack.torchvision.clone(),
        "torchaudio" if stack.torchaudio.is_some() => stack.torchaudio.clone(),
        "triton" if stack.triton.is_some() => stack.triton.clone(),
        _ => request.packages.iter().find(|ask| ask.package == *name).map(|ask| ask.specifiers.clone()),
    }
}

/// Versions above and below those that are asked for; where none of them exists, around the version that is named.
fn versions_around(request: &Request, input: &Input, known: &[Pep440], asked: Option<&Specifiers>) -> Vec<Vec<Change>> {
    let Some(asked) = asked else { return Vec::new() };
    let accepted: Vec<&Pep440> = known.iter().filter(|version| asked.contains(version)).collect();
    let named = asked.iter().next().map(|specifier| specifier.version().clone().without_local());
    let lowest = accepted.first().copied().cloned().or(named.clone());
    let highest = accepted.last().copied().cloned().or(named);
    let changed = |version: &Pep440, upward| change(request, input, Value::Version(version.clone()), upward);
    // Where nothing is accepted, the version that is named may do in another variant.
    let named_too = accepted.is_empty();
    let above = |v: &&Pep440| highest.as_ref().is_none_or(|h| *v > h || named_too && *v == h);
    let below = |v: &&Pep440| lowest.as_ref().is_none_or(|l| *v < l || named_too && *v == l);
    vec![
        known.iter().filter(above).map(|v| changed(v, true)).collect(),
        known.iter().rev().filter(below).map(|v| changed(v, false)).collect(),
    ]
}

/// The same for dotted versions.
fn around<T: Constrained + Family>(
    request: &Request,
    input: &Input,
    known: Vec<T>,
    asked: Option<&Constraint<T>>,
    value: impl Fn(T) -> Value,
) -> Vec<Vec<Change>> {
    let Some(asked) = asked else { return Vec::new() };
    let named = asked.bounds().first().map(|bound| bound.version.clone());
    let lowest = known.iter().find(|v| asked.allows(v)).cloned().or(named.clone());
    let highest = known.iter().rev().find(|v| asked.allows(v)).cloned().or(named);
    let up = known.iter().filter(|v| highest.as_ref().is_none_or(|h| *v > h)).cloned();
    let down = known.iter().rev().filter(|v| lowest.as_ref().is_none_or(|l| *v < l)).cloned();
    vec![
        up.map(|v| change(request, input, value(v), true)).collect(),
        down.map(|v| change(request, input, value(v), false)).collect(),
    ]
}

fn drivers(request: &Request, context: &Context<'_>) -> Result<Vec<Vec<Change>>, Failure> {
    let Some(asked) = &request.target.driver else { return Ok(Vec::new()) };
    let facts = context.matrix.cuda()?;
    let known: Vec<Driver> = facts.drivers().into_iter().map(|row| row.driver).collect();
    // A bare branch is judged by its oldest driver, so its own later ones are changes too.
    let oldest = asked.exact().filter(|driver| driver.precision() == 1).and_then(|d| facts.oldest_of_branch(d.major()));
    let judged = oldest.map(|oldest| Constraint::of(ConstraintOperator::Equal, oldest));
    let mut directions = around(request, &Input::Driver, known, Some(judged.as_ref().unwrap_or(asked)), Value::Driver);
    if !request.target.forward_compat {
        let mut changed = request.clone();
        changed.target.forward_compat = true;
        let text = "forward-compat = true (the cuda-compat package, data-centre GPUs only)".to_owned();
        directions.push(vec![Change { text, request: changed, value: Value::Final, upward: true }]);
    }
    Ok(directions)
}

/// `request` with `input` at exactly `value`.
fn change(request: &Request, input: &Input, value: Value, upward: bool) -> Change {
    let mut changed = request.clone();
    let text = match &value {
        Value::Version(version) => {
            set_specifiers(&mut changed, input, VersionSpecifier::equals_version(version.clone()).into());
            format!("{input} =={version}")
        }
        Value::Driver(driver) => {
            changed.target.driver = Some(Constraint::of(ConstraintOperator::Equal, driver.clone()));
            format!("driver = \"{driver}\"")
        }
        Value::Python(python) => {
            changed.stack.python = Some(PythonAsk::Exact(*python));
            format!("python = \"{python}\"")
        }
        Value::Cudnn(cudnn) => {
            changed.stack.cudnn = Some(Constraint::of(ConstraintOperator::Equal, cudnn.clone()));
            format!("cudnn = \"{cudnn}\"")
        }
        Value::Nccl(nccl) => {
            changed.stack.nccl = Some(Constraint::of(ConstraintOperator::Equal, nccl.clone()));
            format!("nccl = \"{nccl}\"")
        }
        Value::Cuda(cuda) => {
            changed.stack.cuda = Some(Constraint::of(ConstraintOperator::Means, *cuda));
            format!("cuda = \"{cuda}\"")
        }
        Value::Glibc(glibc) => {
            changed.target.glibc = Some(glibc.clone());
            format!("glibc >={glibc}")
        }
        Value::Final => String::new(),
    };
    Change { text, request: changed, value, upward }
}

fn set_specifiers(request: &mut Request, input: &Input, specifiers: Specifiers) {
    let stack = &mut request.stack;
    match input {
        Input::Torch => stack.torch = Some(specifiers),
        Input::Package(name) => {
            let slot = match name.as_str() {
                "torchvision" if stack.torchvision.is_some() => &mut stack.torchvision,
                "torchaudio" if stack.torchaudio.is_some() => &mut stack.torchaudio,
                "triton" if stack.triton.is_some() => &mut stack.triton,
                _ => {
                    match request.packages.iter_mut().find(|ask| ask.package == *name) {
                        Some(ask) => ask.specifiers = specifiers,
                        None => request.packages.push(Ask { package: name.clone(), extras: Vec::new(), specifiers }),
                    }
                    return;
                }
            };
            *slot = Some(specifiers);
        }
        _ => {}
    }
}

impl Change {
    /// The driver that stands in a lower bound on it.
    pub fn lowest_driver(&self) -> Option<&Driver> {
        match &self.value {
            Value::Driver(driver) if self.upward => Some(driver),
            _ => None,
        }
    }

    /// The loosest constraint in the same direction: `>=` the value, or `<` the nearest value that failed.
    pub fn loosened(&self, request: &Request, input: &Input, failed: Option<&Self>) -> Option<Self> {
        let mut changed = request.clone();
        let text = match &self.value {
            Value::Version(version) => {
                let specifier = if self.upward {
                    VersionSpecifier::greater_than_equal_version(short(version))
                } else {
                    match self.above(request, input, failed)? {
                        above if above == *version => VersionSpecifier::less_than_equal_version(short(version)),
                        above => VersionSpecifier::less_than_version(short(&above)),
                    }
                };
                let text = format!("{input} {specifier}");
                set_specifiers(&mut changed, input, specifier.into());
                text
            }
            Value::Driver(driver) if self.upward => {
                let constraint = Constraint::of(ConstraintOperator::AtLeast, driver.clone());
                let text = format!("driver {constraint}");
                changed.target.driver = Some(constraint);
                text
            }
            Value::Driver(driver) => {
                let asked = request.target.driver.as_ref().and_then(|asked| asked.bounds().first());
                let next = match failed.map(|failed| &failed.value) {
                    Some(Value::Driver(next)) => Some(next),
                    _ => asked.map(|bound| &bound.version),
                };
                let (operator, bound) = match next {
                    Some(next) if next.major() != driver.major() => {
                        (ConstraintOperator::Less, Driver::from_numbers(&[next.major()]))
                    }
                    Some(next) => (ConstraintOperator::Less, next.clone()),
                    None => (ConstraintOperator::AtMost, driver.clone()),
                };
                let constraint = Constraint::of(operator, bound);
                let text = format!("driver {constraint} (R{})", driver.major());
                changed.target.driver = Some(constraint);
                text
            }
            Value::Python(python) => {
                let sign = if self.upward { ">=" } else { "<=" };
                let range: Specifiers = format!("{sign}{}.{}", python.major, python.minor).parse().ok()?;
                let text = format!("python {range}");
                changed.stack.python = Some(PythonAsk::Range(range));
                text
            }
            Value::Cudnn(cudnn) => {
                let constraint = bound(cudnn, self.upward, failed, request.stack.cudnn.as_ref())?;
                let text = format!("cudnn {constraint}");
                changed.stack.cudnn = Some(constraint);
                text
            }
            Value::Nccl(nccl) => {
                let constraint = bound(nccl, self.upward, failed, request.stack.nccl.as_ref())?;
                let text = format!("nccl {constraint}");
                changed.stack.nccl = Some(constraint);
                text
            }
            Value::Cuda(cuda) => {
                // Who named one CUDA gets another one; who gave bounds gets bounds.
                if request.stack.cuda.as_ref().is_some_and(|asked| asked.exact().is_some()) {
                    return None;
                }
                let constraint = bound(cuda, self.upward, failed, request.stack.cuda.as_ref())?;
                let text = format!("cuda {constraint}");
                changed.stack.cuda = Some(constraint);
                text
            }
            Value::Glibc(_) | Value::Final => return None,
        };
        Some(Self { text, request: changed, value: self.value.clone(), upward: self.upward })
    }

    /// The lowest version above the value that does not work: the one that failed before it, else the lowest asked for.
    fn above(&self, request: &Request, input: &Input, failed: Option<&Self>) -> Option<Pep440> {
        match failed.map(|failed| &failed.value) {
            Some(Value::Version(version)) => Some(version.clone()),
            _ => {
                let asked = match input {
                    Input::Torch => request.stack.torch.clone(),
                    Input::Package(name) => specifiers_of(request, name),
                    _ => None,
                };
                asked?.iter().next().map(|specifier| specifier.version().clone().without_local())
            }
        }
    }

    /// The change of `input`, applied to another request.
    pub fn carried_to(&self, request: &Request, input: &Input) -> Request {
        let mut changed = request.clone();
        match input {
            Input::Driver => {
                changed.target.driver = self.request.target.driver.clone();
                changed.target.forward_compat = self.request.target.forward_compat;
            }
            Input::Gpu(_) => changed.target.gpus = self.request.target.gpus.clone(),
            Input::Glibc => changed.target.glibc = self.request.target.glibc.clone(),
            Input::Python => changed.stack.python = self.request.stack.python.clone(),
            Input::Cuda => changed.stack.cuda = self.request.stack.cuda.clone(),
            Input::Cudnn => changed.stack.cudnn = self.request.stack.cudnn.clone(),
            Input::Nccl => changed.stack.nccl = self.request.stack.nccl.clone(),
            Input::Variant => changed.stack.variant = self.request.stack.variant.clone(),
            Input::Torch => changed.stack.torch = self.request.stack.torch.clone(),
            Input::Package(name) => {
                if let Some(specifiers) = specifiers_of(&self.request, name) {
                    set_specifiers(&mut changed, input, specifiers);
                }
            }
        }
        changed
    }
}

/// `>=` the value; or `<` the nearest above it that does not work: the one that failed, else the lowest asked for.
fn bound<T: Constrained>(
    value: &T,
    upward: bool,
    failed: Option<&Change>,
    asked: Option<&Constraint<T>>,
) -> Option<Constraint<T>> {
    if upward {
        return Some(Constraint::of(ConstraintOperator::AtLeast, value.clone()));
    }
    let failed = failed.and_then(|failed| match &failed.value {
        Value::Cudnn(v) => v.to_string().parse().ok(),
        Value::Nccl(v) => v.to_string().parse().ok(),
        Value::Cuda(v) => v.to_string().parse().ok(),
        _ => None,
    });
    let lowest = asked.and_then(|asked| asked.bounds().first()).map(|bound| bound.version.clone());
    Some(Constraint::of(ConstraintOperator::Less, failed.or(lowest)?))
}

/// Without zeros at the end, two numbers at least: 2.4.0 is 2.4.
fn short(version: &Pep440) -> Pep440 {
    let mut release = version.release().to_vec();
    while release.len() > 2 && release.last() == Some(&0) {
        release.pop();
    }
    version.clone().with_release(release)
}
