//! Exports, read by the tools that read them in earnest: conda-lock, rattler and pip, the schemas of Kubernetes and Compose,
//! PyYAML (YAML 1.1) and python-dotenv.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::run::{self, folder, gpulock, python, stdout, succeed};

/// Packages of PyPI; docker-compose 1.29 and conda itself are not installable from there for a current Python.
const TOOLS: [&str; 6] =
    ["kubernetes-validate", "check-jsonschema", "conda-lock", "py-rattler", "python-dotenv", "pyyaml"];

/// Prints what the readers see, as JSON.
const READ: &str = r#"
import json, pathlib
import dotenv, yaml
from conda_lock.src_parser.environment_yaml import _parse_environment_file_for_platform
from pip._internal.network.session import PipSession
from pip._internal.req.constructors import install_req_from_parsed_requirement
from pip._internal.req.req_file import parse_requirements
from rattler import MatchSpec

load = lambda name: yaml.safe_load(open(name))
conda = load("environment.yml")
lines = conda["dependencies"][-1]["pip"]
# As conda hands them over: conda/env/installers/pip.py.
open("condaenv.requirements.txt", "w").write("\n".join(lines))
parsed = parse_requirements("condaenv.requirements.txt", session=PipSession())
requirements = [install_req_from_parsed_requirement(line) for line in parsed]
specs = [MatchSpec(spec, strict=True) for spec in conda["dependencies"][:-1]]
# conda-lock knows no hashes in lines of pip; the rest is read as it is.
plain = dict(conda, dependencies=conda["dependencies"][:-1] + [{"pip": [line.split(" --hash=")[0] for line in lines]}])
mapping = pathlib.Path("mapping.yaml").resolve()
mapping.write_text("{}")
locked = _parse_environment_file_for_platform(
    yaml.safe_dump(plain), category="main", platform="linux-64", mapping_url=mapping.as_uri()
)
print(json.dumps({
    "compose": load("compose.yaml"),
    "variables": conda["variables"],
    "k8s": load("k8s.yaml"),
    "dotenv": dotenv.dotenv_values("job.env"),
    "pip": {one.name: [str(one.specifier), one.hash_options["sha256"]] for one in requirements},
    "specs": [[spec.name.normalized, str(spec.version or ""), str(spec.build or "")] for spec in specs],
    "locked": sorted(one.name for one in locked),
}))
"#;

#[test]
fn network_exports_are_read_by_their_tools() {
    if !run::network() {
        return;
    }
    let folder = folder();
    let path = folder.path();
    let venv = path.join("venv");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let tool = |name: &str| venv.join("bin").join(name);
    succeed(python(&tool("python")).args(["-m", "pip", "install", "--quiet"]).args(TOOLS));
    let odd = "a\"b\\c 'd' : - # yes\n\t{{ 7 }} $HOME $(A) ${B} \u{85}\u{2028}é😀";
    let env = BTreeMap::from([("A", odd), ("B", "no"), ("C", ""), ("D", "it's {x}: y")]);
    let plain = "B = \"no\"\nC = \"\"\n";
    let quoted = "D = \"it's {x}: y\"\n";
    // What conda hands to a shell may have no quotes.
    lock(path, &format!("{plain}D = \"{{x}}: y # - é😀\"\n"));
    export(path, &["conda", "-o", "environment.yml"]);
    let odd_line = "A = \"a\\\"b\\\\c 'd' : - # yes\\n\\t{{ 7 }} $HOME $(A) ${B} \\u0085\\u2028é😀\"\n";
    lock(path, &format!("{odd_line}{plain}{quoted}"));
    export(path, &["compose", "-o", "compose.yaml", "--", "python", odd]);
    export(path, &["k8s", "--image", "registry.invalid/t:1", "-o", "k8s.yaml", "--", "python", odd]);
    succeed(Command::new(tool("kubernetes-validate")).args(["--strict", "k8s.yaml"]).current_dir(path));
    let compose = ["--builtin-schema", "vendor.compose-spec", "compose.yaml"];
    succeed(Command::new(tool("check-jsonschema")).args(compose).current_dir(path));
    // A line feed is more than dotenv holds.
    lock(path, &format!("{plain}{quoted}"));
    export(path, &["env", "-o", "job.env"]);
    fs::write(path.join("read.py"), READ).unwrap();
    let read =
        stdout(Command::new(tool("python")).arg("read.py").env("PIP_CONFIG_FILE", "/dev/null").current_dir(path));
    let read: Value = serde_json::from_str(read.lines().last().unwrap()).unwrap();

    assert_eq!(read["variables"], serde_json::json!({ "B": "no", "C": "", "D": "{x}: y # - é😀" }));
    let dollars = odd.replace('$', "$$");
    let service = &read["compose"]["services"]["cluster"];
    assert_eq!(service["command"][1], *dollars);
    let container = &read["k8s"]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"][1], *dollars);
    let variables = container["env"].as_array().unwrap();
    for (name, value) in &env {
        let value = value.replace('$', "$$");
        assert_eq!(service["environment"][name], *value);
        assert!(variables.iter().any(|one| one["name"] == **name && one["value"] == *value), "{name}");
    }
    for (name, value) in env.iter().filter(|(name, _)| **name != "A") {
        assert_eq!(read["dotenv"][name], **value);
    }
    assert_eq!(read["dotenv"]["TORCH_CUDA_ARCH_LIST"], "8.0;12.0");
    let specs = serde_json::json!([["python", "3.11.*", ""], ["python-abi", "3.11.*", "*_cp311"]]);
    assert_eq!(read["specs"][0], specs[0]);
    assert_eq!((&read["specs"][1][1], &read["specs"][1][2]), (&specs[1][1], &specs[1][2]));
    assert_eq!((&read["specs"][2][0], &read["specs"][2][1]), (&"cuda-version".into(), &"12.8.*".into()));
    let lock: Value = serde_json::from_str(&stdout(
        gpulock(path, &path.join("cache")).args(["resolve", "--locked", "--format", "json"]),
    ))
    .unwrap();
    let packages = lock["targets"][0]["packages"].as_array().unwrap();
    assert_eq!(read["pip"].as_object().unwrap().len(), packages.len());
    for package in packages {
        let expected = serde_json::json!([format!("=={}", package["version"].as_str().unwrap()), [package["sha256"]]]);
        assert_eq!(read["pip"][package["name"].as_str().unwrap()], expected);
    }
    let locked: Vec<&str> = read["locked"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(["cuda-version", "python", "torch"].iter().all(|name| locked.contains(name)), "{locked:?}");
}

fn lock(folder: &Path, env: &str) {
    let manifest = format!(
        "[stack]\ntorch = \"2.8.0\"\npython = \"3.11\"\n[target.cluster]\ngpus = [\"A100\", \"RTX 5090\"]\ndriver = \"580\"\n\
         [env]\n{env}"
    );
    fs::write(folder.join("gpulock.toml"), manifest).unwrap();
    succeed(gpulock(folder, &folder.join("cache")).args(["resolve", "--offline", "--quiet"]));
}

fn export(folder: &Path, arguments: &[&str]) {
    succeed(gpulock(folder, &folder.join("cache")).arg("export").args(arguments));
}
