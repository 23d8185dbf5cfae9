//! `gpulock schema`: what is printed and what is read has the form that the schemas say.

use serde_json::{Map, Value, json};

use super::program::{GOOD, Place};
use crate::machine::tree::Machine;
use gpulock::manifest::{RULES, parse};
use gpulock::report::schema::ALL;

fn schema(name: &str) -> Value {
    Place::empty().run(&["schema", name]).code(0).json()
}

/// The same schema, where a field that it does not name is an error.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.iter().map(|(key, value)| (key.clone(), closed(value))).collect();
            if fields.contains_key("properties") {
                fields.insert("additionalProperties".into(), json!(false));
            }
            Value::Object(fields)
        }
        Value::Array(values) => values.iter().map(closed).collect(),
        other => other.clone(),
    }
}

/// What is wrong with `value`.
fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn holds(name: &str, value: &Value) {
    let wrong = errors(&closed(&schema(name)), value);
    assert!(wrong.is_empty(), "{name}: {wrong:#?}\n{value:#}");
}

#[test]
fn every_schema_is_one() {
    let list = Place::empty().run(&["schema"]).code(0).out;
    for one in ALL {
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(one.name)), "{list}");
        let schema = schema(one.name);
        assert!(jsonschema::meta::is_valid(&schema), "{}", one.name);
    }
    Place::empty().run(&["schema", "lokc"]).code(2).says(&["lock", "manifest"]);
}

#[test]
fn results_have_their_form() {
    let place = Place::locked();
    holds("lock", &place.run(&["resolve", "--offline", "--format", "json"]).code(0).json());
    let image = Place::with(&format!("{GOOD}[image]\nflavor = 'devel'\nos = 'ubuntu22.04'\n[env]\nA = 'b'\n"));
    holds("lock", &image.run(&["resolve", "--offline", "--format", "json"]).code(0).json());
    holds("why", &place.run(&["why", "torch", "--offline", "--format", "json"]).code(0).json());
    holds("explain", &place.run(&["explain", "35", "--format", "json"]).code(0).json());
    let ask = ["--offline", "--format", "json", "--lock", "x.lock"];
    let one_off = |more: &[&str]| Place::empty().run(&[&["resolve"], &ask[..], more].concat());
    holds("lock", &one_off(&["--allow-pending", "--gpu", "V100", "--driver", "580.65.06"]).code(0).json());
    let conflict = one_off(&["--gpu", "RTX 5090", "--driver", "550.54.15", "--torch", ">=2.7"]).code(1).json();
    holds("conflict", &conflict);
    assert!(conflict["repairs"][0]["gives"]["torch"].is_string());
    let two = format!("{}[target.b]\ngpus = ['RTX 5090']\n", GOOD.replace("A100", "V100").replace("580", "390"));
    let place = Place::with(&two.replace("2.8.0", "2.2.0"));
    let both = place.run(&["resolve", "--offline", "--format", "json"]).code(1).json();
    holds("conflict", &both);
    assert!(both["others"][0]["target"] == "b", "{both:#}");
    holds("error", &one_off(&["--gpu", "RTX 9999"]).code(2).json());
    let broken = Place::with("[stack]\ntourch = '2'\n[target.a]\ngpus = []\n");
    holds("error", &broken.run(&["resolve", "--offline", "--format", "json"]).code(2).json());
    let machine = Machine::of_readme(place.path("node"));
    let doctor = machine.doctor(&["--format", "json"]).code(1).json();
    holds("doctor", &doctor);
    assert!(doctor["findings"].as_array().unwrap().len() > 2);
    holds("written", &Place::empty().run(&["init", "--gpu", "A100", "--format", "json"]).code(0).json());
}

/// A manifest as JSON, which is how an editor checks it.
fn as_json(toml: &str) -> Value {
    toml_edit::de::from_str(toml).unwrap()
}

#[test]
fn manifests_are_refused_where_gpulock_refuses_them() {
    let schema = schema("manifest");
    let stack = "python = '>=3.10,<3.13'\ntorch = '>=2.7,<2.9'\ntorchvision = '*'\ncuda = '>=12.4,<13'\ncudnn = '>=9.1'\n\
                 nccl = '2.27'\nvariant = 'cu128'\nsame-torch = true\ntriton = '*'\ntorchaudio = '*'";
    let whole = format!(
        "[stack]\n{stack}\n[packages]\nnumpy = '<3'\naccelerate = {{ version = '*', extras = ['test'] }}\n[target.a]\n\
         platform = 'linux-aarch64'\nglibc = '2.31'\ngpus = ['GH200']\ndriver = '>=570'\nforward-compat = false\n\
         [[index]]\nname = 'x'\nurl = 'https://x.invalid/simple'\npackages = ['y']\n[image]\nos = 'ubuntu22.04'\n\
         flavor = 'runtime'\n[env]\nNCCL_DEBUG = 'WARN'\n[checks]\nduplicate-soname = {{ level = 'off', reason = 'x' }}\n\
         lock-drift = 'error'\n"
    );
    let target = "[target.a]\ngpus = ['A100']\n";
    let mut good: Vec<String> = vec![whole, GOOD.into(), target.into()];
    good.extend(["550.54.15", "570", ">=570", ">=570,<590", "*"].map(|d| format!("{target}driver = '{d}'\n")));
    good.extend(
        ["12", "12.8", "cu128", ">=12.4,<13", "!=12.8", "*"].map(|c| format!("[stack]\ncuda = '{c}'\n{target}")),
    );
    for text in &good {
        assert!(parse(text, "gpulock.toml").is_ok(), "{text}");
        assert_eq!(errors(&schema, &as_json(text)), [""; 0], "{text}");
    }
    let refused = [
        "",
        "[target]\n",
        "[target.a]\n",
        "[target.a]\ngpus = []\n",
        "[target.a]\ngpus = 'A100'\n",
        "[target.a]\ngpus = ['A100']\ngpu = 'x'\n",
        "[target.a]\ngpus = ['A100']\ndriver = 'abc'\n",
        "[target.a]\ngpus = ['A100']\nplatform = 'windows'\n",
        "[target.a]\ngpus = ['A100']\nglibc = 'x'\n",
        "[target.a]\ngpus = ['A100']\n[stack]\ntourch = '2'\n",
        "[target.a]\ngpus = ['A100']\n[stack]\ntorch = 2\n",
        "[target.a]\ngpus = ['A100']\n[stack]\nvariant = '12.8'\n",
        "[target.a]\ngpus = ['A100']\n[stack]\nsame-torch = 'yes'\n",
        "[target.a]\ngpus = ['A100']\n[packages]\ntorch = '2'\n",
        "[target.a]\ngpus = ['A100']\n[packages]\nx = { versoin = '2' }\n",
        "[target.a]\ngpus = ['A100']\n[checks]\nno-such-rule = 'error'\n",
        "[target.a]\ngpus = ['A100']\n[checks]\nlock-drift = 'off'\n",
        "[target.a]\ngpus = ['A100']\n[checks]\nlock-drift = { level = 'off' }\n",
        "[target.a]\ngpus = ['A100']\n[image]\nflavor = 'tiny'\n",
        "[target.a]\ngpus = ['A100']\n[env]\n'A-B' = 'x'\n",
        "[target.a]\ngpus = ['A100']\n[[index]]\nname = 'x'\nurl = 'https://x.invalid'\n",
        "[target.a]\ngpus = ['A100']\n[[index]]\nname = 'x'\nurl = 'https://x.invalid?a=b'\npackages = ['y']\n",
        "[target.a]\ngpus = ['A100']\n[more]\n",
    ];
    for text in refused {
        assert!(parse(text, "gpulock.toml").is_err(), "{text}");
        assert_ne!(errors(&schema, &as_json(text)), [""; 0], "{text}");
    }
    assert_eq!(schema["properties"]["checks"]["propertyNames"]["enum"], json!(RULES.as_slice()));
}
