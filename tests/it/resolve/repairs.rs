//! A repair gives what it says: each is applied as it is written, and resolved.

use gpulock::manifest::{self, Ask};
use gpulock::resolve::Repair;

use super::*;

/// So many questions without an answer; the unoptimised program takes two seconds for each.
fn enough() -> usize {
    let asked = std::env::var("GPULOCK_TEST_QUESTIONS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(if cfg!(debug_assertions) { 12 } else { 240 })
}

/// Numbers that look random and are the same on every run (xorshift).
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.throw(of.len())]
    }

    /// One of these, in one of `sides` cases.
    fn maybe<'a>(&mut self, sides: usize, of: &[&'a str]) -> Option<&'a str> {
        (self.throw(sides) == 0).then(|| self.one(of))
    }
}

const GPUS: [&str; 12] =
    ["RTX 5090", "A100", "H100", "V100", "GTX 1080 Ti", "T4", "L40S", "B200", "RTX 3090", "RTX A6000", "L4", "H200"];
const DRIVERS: [&str; 14] = [
    "450.80.02",
    "470.57.02",
    "525.60.13",
    "535.183.06",
    "550.54.15",
    "570.124.06",
    "575",
    "580.65.06",
    "595",
    "470",
    ">=570",
    ">=450,<525",
    "<580",
    "418.40.04",
];
const TORCHES: [&str; 12] =
    ["2.1.0", ">=2.7", "2.2", "<2", ">=2.15", "==9.9", "2.8.0", ">=2.3,<2.5", "<=2.0", "!=2.10.0", "1.13", "~=2.6.0"];
const CUDAS: [&str; 12] =
    ["12", "12.4", "11.8", ">=12.8", "<11.8", "13", "12.7", ">=12.4,<13", "<=12.1", ">13.0", "10", "cu126"];

fn question(dice: &mut Dice) -> Request {
    let mut request = request(&[dice.one(&GPUS)], dice.maybe(1, &DRIVERS).unwrap_or_default());
    request.target.gpus.extend(dice.maybe(4, &GPUS).map(str::to_owned));
    request.target.gpus.dedup();
    request.target.platform = dice.maybe(6, &["linux-aarch64"]).map_or(Platform::LinuxX86_64, |p| p.parse().unwrap());
    request.target.glibc = dice.maybe(8, &["2.17", "2.27", "2.31"]).map(|text| text.parse().unwrap());
    let stack = &mut request.stack;
    stack.torch = dice.maybe(2, &TORCHES).map(|text| manifest::parse_specifiers(text).unwrap());
    stack.cuda = dice.maybe(3, &CUDAS).map(|text| manifest::parse_cuda(text).unwrap());
    let cudnns = ["8", "9", ">=9.10", "<8.5", "9.1.0.70", "8.7"];
    stack.cudnn = dice.maybe(6, &cudnns).map(|text| manifest::parse_cudnn(text).unwrap());
    stack.nccl = dice.maybe(12, &[">=2.27", "2.19", "<2.14"]).map(|text| manifest::parse_nccl(text).unwrap());
    stack.variant = dice.maybe(9, &["cu118", "cu121", "cu126", "cu127", "cu132"]).map(str::to_owned);
    let pythons = ["3.8", "3.11", "3.14", ">=3.12", "<3.9", "3.6"];
    stack.python = dice.maybe(4, &pythons).map(|text| manifest::parse_python(text).unwrap());
    stack.torchvision =
        dice.maybe(6, &["*", "0.15", ">=0.22", "<0.16"]).map(|t| manifest::parse_specifiers(t).unwrap());
    request.packages.extend(dice.maybe(6, &["numpy<1.20", "numpy>=2", "sympy==1.12"]).map(ask));
    request
}

fn ask(text: &str) -> Ask {
    manifest::parse_package(text).unwrap()
}

/// Applies a change as a user does who takes it at its word; tells whether `--allow-pending` is a part of it.
fn apply(change: &str, request: &mut Request) -> bool {
    for part in change.split(" and ") {
        let part = part.split(" (").next().unwrap();
        if part == "resolve without --offline, or with --allow-pending" {
            return true;
        }
        if let Some(name) = part.strip_prefix("gpus without ") {
            request.target.gpus.retain(|gpu| gpu != name);
            continue;
        }
        let (key, value) = part.split_once(' ').unwrap();
        let value = value.strip_prefix("= ").unwrap_or(value).trim_matches('"');
        let stack = &mut request.stack;
        match key {
            "driver" => request.target.driver = Some(manifest::parse_driver(value).unwrap()),
            "glibc" => request.target.glibc = Some(manifest::parse_glibc(value).unwrap()),
            "platform" => request.target.platform = manifest::parse_platform(value).unwrap(),
            "forward-compat" => request.target.forward_compat = value == "true",
            "torch" => stack.torch = Some(manifest::parse_specifiers(value).unwrap()),
            "torchvision" => stack.torchvision = Some(manifest::parse_specifiers(value).unwrap()),
            "cuda" => stack.cuda = Some(manifest::parse_cuda(value).unwrap()),
            "cudnn" => stack.cudnn = Some(manifest::parse_cudnn(value).unwrap()),
            "nccl" => stack.nccl = Some(manifest::parse_nccl(value).unwrap()),
            "variant" => stack.variant = Some(manifest::parse_variant(value).unwrap()),
            "python" => stack.python = Some(manifest::parse_python(value).unwrap()),
            package => {
                let asks = &mut request.packages;
                let of = |ask: &&mut Ask| ask.package.as_str() == package;
                asks.iter_mut().find(of).unwrap().specifiers = manifest::parse_specifiers(value).unwrap();
            }
        }
    }
    false
}

/// What is wrong with a repair; nothing when it holds.
fn fault(request: &Request, repair: &Repair, pending: bool, matrix: &Matrix) -> Option<String> {
    let mut changed = request.clone();
    let pending = apply(&repair.change, &mut changed) || pending;
    let gives = |request: &Request| match with_context(matrix, pending, |context| resolve(request, context)) {
        Ok(Outcome::Solved(solution)) => solution.gives().words(),
        Ok(Outcome::Conflict(conflict)) => format!("no stack: {}", conflict.explanation),
        Err(failure) => format!("no answer: {failure}"),
    };
    let found = gives(&changed);
    if found != repair.gives.words() {
        return Some(format!("`{}` gives {found}, not {}", repair.change, repair.gives.words()));
    }
    let (driver, at_bound) = repair.at_bound.as_ref()?;
    changed.target.driver = Some(driver.to_string().parse().unwrap());
    let found = gives(&changed);
    (found != at_bound.words()).then(|| format!("driver {driver} gives {found}, not {}", at_bound.words()))
}

#[test]
fn every_repair_gives_what_it_says() {
    let enough = enough();
    let shares = std::thread::available_parallelism().map_or(1, |n| n.get()).min(4);
    let work = |share: usize| {
        let matrix = Matrix::embedded();
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(share as u64 + 1));
        let (mut questions, mut repairs, mut faults) = (0, 0, Vec::new());
        while questions < enough.div_ceil(shares) {
            let request = question(&mut dice);
            let pending = dice.throw(2) == 0;
            let Ok(Outcome::Conflict(conflict)) = with_context(&matrix, pending, |c| resolve(&request, c)) else {
                continue;
            };
            questions += 1;
            repairs += conflict.repairs.len();
            let found = conflict.repairs.iter().filter_map(|repair| fault(&request, repair, pending, &matrix));
            faults.extend(found.map(|fault| format!("{fault}\n  {:?} {:?}\n", request.target, request.stack)));
        }
        (questions, repairs, faults)
    };
    let shares: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..shares).map(|share| scope.spawn(move || work(share))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let questions: usize = shares.iter().map(|share| share.0).sum();
    let repairs: usize = shares.iter().map(|share| share.1).sum();
    let faults: Vec<String> = shares.into_iter().flat_map(|share| share.2).collect();
    assert!(faults.is_empty(), "{} of {repairs} repairs:\n{}", faults.len(), faults.join("\n"));
    println!("{questions} questions, {repairs} repairs");
    assert!(questions >= enough && repairs >= questions, "{repairs} repairs of {questions} questions");
}
