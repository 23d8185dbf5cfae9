//! Questions with known answers, by the matrix as a whole and by what the snapshot has wheels of.

use super::*;

/// Both answers: of the matrix (`--offline --allow-pending`), and of what has hashes (`--offline`).
fn both(request: &Request) -> [String; 2] {
    [true, false].map(|pending| short(&answer(request, pending)))
}

fn asking(gpus: &[&str], driver: &str, ask: impl FnOnce(&mut Request)) -> Request {
    let mut request = request(gpus, driver);
    ask(&mut request);
    request
}

fn torch(specifiers: &str) -> impl FnOnce(&mut Request) {
    let specifiers = specifiers.parse().unwrap();
    move |request| request.stack.torch = Some(specifiers)
}

fn solution(request: &Request, pending: bool) -> Solution {
    match answer(request, pending) {
        Outcome::Solved(solution) => *solution,
        Outcome::Conflict(conflict) => panic!("{}", conflict.explanation),
    }
}

fn conflict(request: &Request) -> Conflict {
    match answer(request, true) {
        Outcome::Conflict(conflict) => *conflict,
        Outcome::Solved(solution) => panic!("{:?}", solution.stack),
    }
}

fn notes(solution: &Solution) -> String {
    solution.notes.iter().map(|note| format!("{}\n", note.message)).collect()
}

fn changes(conflict: &Conflict) -> Vec<&str> {
    conflict.repairs.iter().map(|repair| repair.change.as_str()).collect()
}

#[test]
fn rtx_5090_with_its_first_driver_branch() {
    let request = asking(&["RTX 5090"], "570.124.06", |r| {
        r.stack.torch = Some(">=2.7".parse().unwrap());
        r.stack.python = python("3.11");
    });
    let [matrix, snapshot] = both(&request);
    assert_eq!(matrix, "2.13.0+cu129, minor-version, sm_120 by sm_120");
    assert_eq!(snapshot, "2.10.0+cu128, native, sm_120 by sm_120");
    assert!(notes(&solution(&request, true)).contains("torch 2.11.0+cu128"), "the newest native build");
    assert!(notes(&solution(&request, false)).contains("would prefer torch 2.13.0+cu129"));
}

#[test]
fn rtx_5090_and_a_torch_before_it() {
    let request = asking(&["RTX 5090"], "570.124.06", |r| {
        r.stack.torch = Some("==2.2.*".parse().unwrap());
        r.stack.cuda = Some("12.4".parse().unwrap());
    });
    let conflict = conflict(&request);
    assert_eq!(changes(&conflict), ["torch >=2.7 and cuda = \"12.8\""]);
    assert_eq!(conflict.repairs[0].gives.words(), "torch 2.11.0, cu128");
    assert!(conflict.explanation.contains("torch ==2.2.*") && conflict.explanation.contains("RTX 5090 (sm_120)"));
    assert!(conflict.explanation.contains("CUDA 12.4"));
    assert!(conflict.facts.iter().any(|fact| fact.claim.contains("CUDA 12.4 does not know RTX 5090")));
    assert!(conflict.facts.iter().all(|fact| !fact.source.is_empty()));
}

#[test]
fn rtx_5090_and_a_driver_before_it() {
    let request = asking(&["RTX 5090"], "550.54.15", torch(">=2.7"));
    let conflict = conflict(&request);
    assert_eq!(changes(&conflict), ["driver >=570.26"]);
    assert!(conflict.explanation.contains("does not know RTX 5090"));
    assert!(conflict.explanation.contains("570.26"));
}

#[test]
fn volta_and_blackwell_in_one_target() {
    let [matrix, snapshot] = both(&request(&["V100", "RTX 5090"], "570.124.06"));
    assert_eq!(matrix, "2.10.0+cu128, native, sm_70 by sm_70, sm_120 by sm_120");
    assert_eq!(snapshot, matrix);
}

#[test]
fn volta() {
    let [matrix, snapshot] = both(&request(&["V100"], "580.65.06"));
    assert_eq!(matrix, "2.14.1+cu126, native, sm_70 by sm_70");
    assert_eq!(snapshot, "2.10.0+cu128, native, sm_70 by sm_70");
    let none = conflict(&asking(&["V100"], "580.65.06", torch(">=2.15")));
    assert_eq!(changes(&none), ["torch <2.15"]);
    assert_eq!(none.repairs[0].gives.words(), "torch 2.14.1, cu126");
}

#[test]
fn ampere_with_a_cuda_11_driver() {
    let [matrix, snapshot] = both(&request(&["A100"], "470.57.02"));
    assert_eq!(matrix, "2.7.1+cu118, minor-version, sm_80 by sm_80");
    assert_eq!(snapshot, "2.0.1+cu117, minor-version, sm_80 by sm_80");
}

#[test]
fn hopper_with_the_first_cuda_12_driver() {
    let [matrix, snapshot] = both(&request(&["H100"], "525.60.13"));
    assert_eq!(matrix, "2.14.1+cu126, minor-version, sm_90 by sm_90");
    assert_eq!(snapshot, "2.10.0+cu128, minor-version, sm_90 by sm_90");
}

#[test]
fn forward_compatibility_is_never_chosen_by_itself() {
    let with_535 = |forward| {
        asking(&["H100"], "535.104.05", |r| {
            r.stack.cuda = Some("13".parse().unwrap());
            r.target.forward_compat = forward;
        })
    };
    let none = conflict(&with_535(false));
    assert!(changes(&none).iter().any(|change| change.starts_with("forward-compat = true")), "{:?}", changes(&none));
    assert!(changes(&none).contains(&"driver >=580"));
    let forward = short(&answer(&with_535(true), true));
    assert!(forward.contains("forward"), "{forward}");
    let geforce = asking(&["RTX 4090"], "535.104.05", |r| {
        r.stack.cuda = Some("13".parse().unwrap());
        r.target.forward_compat = true;
    });
    assert!(matches!(answer(&geforce, true), Outcome::Conflict(_)));
}

#[test]
fn cudnn_is_what_torch_pins() {
    let none = conflict(&asking(&["A100"], "525.60.13", |r| {
        r.stack.torch = Some("==2.1.0".parse().unwrap());
        r.stack.cudnn = Some(">=9".parse().unwrap());
    }));
    assert!(changes(&none).contains(&"torch >=2.4"), "{:?}", changes(&none));
    assert!(none.facts.iter().any(|fact| fact.claim.contains("pins cuDNN 8.9.2.26")));
}

#[test]
fn a_newer_driver_runs_an_older_cuda() {
    let request = asking(&["A100"], "525.60.13", |r| {
        r.stack.torch = Some("==2.1.0".parse().unwrap());
        r.stack.cuda = Some("11.8".parse().unwrap());
    });
    assert_eq!(both(&request)[0], "2.1.0+cu118, native, sm_80 by sm_80");
}

#[test]
fn code_of_a_lower_minor_serves() {
    let request = asking(&["GTX 1080 Ti"], "580.65.06", torch(">=2.8"));
    assert_eq!(both(&request)[0], "2.14.1+cu126, native, sm_61 by sm_60");
}

#[test]
fn python_and_glibc_bound_torch() {
    let python_38 = asking(&["A100"], "580.65.06", |r| r.stack.python = python("3.8"));
    assert!(both(&python_38).iter().all(|answer| answer.starts_with("2.4.1+cu121")));
    let old_glibc = asking(&["A100"], "580.65.06", |r| r.target.glibc = Some("2.17".parse().unwrap()));
    let [matrix, snapshot] = both(&old_glibc);
    assert!(matrix.starts_with("2.6.0+cu124"), "{matrix}");
    assert!(snapshot.starts_with("2.6.0+cu124"), "{snapshot}");
}

#[test]
fn a_cuda_that_never_was() {
    let range = asking(&["RTX 5090"], "580.65.06", |r| r.stack.cuda = Some(">=12.7".parse().unwrap()));
    assert_eq!(both(&range)[0], "2.15.0+cu132, minor-version, sm_120 by sm_120");
    let none = conflict(&asking(&["RTX 5090"], "580.65.06", |r| r.stack.cuda = Some("12.7".parse().unwrap())));
    assert!(none.explanation.contains("12.7 was never released") && none.explanation.contains("12.6, 12.8"));
    let none = conflict(&asking(&["A100"], "580.65.06", |r| r.stack.variant = Some("cu127".into())));
    assert!(none.explanation.contains("no torch variant cu127") && none.explanation.contains("cu126, cu128"));
}

#[test]
fn arm_servers_and_jetson() {
    let arm = |gpu: &str, driver: &str, ask: &dyn Fn(&mut Request)| {
        asking(&[gpu], driver, |r| {
            r.target.platform = Platform::LinuxAarch64;
            ask(r);
        })
    };
    let gh200 = arm("GH200", "570.124.06", &|r| r.stack.torch = Some("==2.8.*".parse().unwrap()));
    assert_eq!(both(&gh200)[0], "2.8.0+cu129, minor-version, sm_90 by sm_90");
    assert!(both(&gh200)[1].starts_with("none"), "the default index has a CPU build of it");
    let orin = arm("Jetson Orin", "", &|r| r.stack.cuda = Some("12".parse().unwrap()));
    assert!(both(&orin).iter().all(|answer| answer.starts_with("none")));
}

#[test]
fn gpus_that_are_not_known() {
    let matrix = Matrix::embedded();
    let failure = outcome(&request(&["RTX 9999"], "570"), &matrix).unwrap_err();
    assert_eq!(failure.class, Class::Unanswerable);
    assert!(failure.diagnostics[0].fix.as_ref().is_some_and(|fix| fix.contains("did you mean")));
    let [by_number, without_ptx] = both(&request(&["sm_130"], "570"));
    assert_eq!(by_number, "2.7.1+cu128, native, sm_130 by compute_120");
    assert!(without_ptx.starts_with("none"), "no wheel with PTX is in the snapshot");
}

#[test]
fn two_targets() {
    let requests = [request(&["A100"], "470.57.02"), request(&["H100"], "580.65.06")];
    let apart: Vec<String> = all(&requests).iter().map(short).collect();
    assert_eq!(apart, ["2.7.1+cu118, minor-version, sm_80 by sm_80", "2.15.0+cu132, minor-version, sm_90 by sm_90"]);
    let same = requests.map(|mut request| {
        request.stack.same_torch = true;
        request
    });
    let together: Vec<String> = all(&same).iter().map(short).collect();
    assert!(together.iter().all(|answer| answer.starts_with("2.7.1+")), "{together:?}");
}
