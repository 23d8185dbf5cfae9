//! The configuration of an image: takes its JSON, gives what a container is started with, and where its layers are from
//! (OCI image specification, "Image Configuration"; Docker's is the same).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// What an image says of itself.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The variables that a container is started with.
    pub variables: BTreeMap<String, String>,
    /// The program that a container is started with, and its arguments: the entry point, then the command.
    pub command: Vec<String>,
    /// The folder that it is started in, where that is said.
    pub folder: Option<PathBuf>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// `linux/amd64`.
    pub platform: Option<String>,
    /// For each layer, the lowest first, the digest of what it unpacks to.
    pub(super) diff_ids: Vec<String>,
    /// For each layer, what made it; absent where the history does not say.
    made_by: Vec<Option<String>>,
}

#[derive(Deserialize)]
struct Json {
    os: Option<String>,
    architecture: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    config: Start,
    #[serde(default, deserialize_with = "or_default")]
    rootfs: RootFs,
    #[serde(default, deserialize_with = "or_default")]
    history: Vec<Step>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Start {
    #[serde(rename = "Env", deserialize_with = "or_default")]
    env: Vec<String>,
    #[serde(rename = "Entrypoint", deserialize_with = "words")]
    entrypoint: Vec<String>,
    #[serde(rename = "Cmd", deserialize_with = "words")]
    cmd: Vec<String>,
    #[serde(rename = "WorkingDir")]
    folder: Option<PathBuf>,
    #[serde(rename = "Labels", deserialize_with = "or_default")]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RootFs {
    #[serde(deserialize_with = "or_default")]
    diff_ids: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Step {
    #[serde(deserialize_with = "or_default")]
    created_by: String,
    #[serde(deserialize_with = "or_default")]
    empty_layer: bool,
}

/// Go writes `null` for what is empty.
fn or_default<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Docker takes one word where a list is expected (`strslice.StrSlice`).
fn words<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::<Words>::deserialize(from)? {
        None => Vec::new(),
        Some(Words::One(word)) => vec![word],
        Some(Words::Many(words)) => words,
    })
}

impl Config {
    pub(super) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let json: Json = serde_json::from_slice(json)?;
        // The last of several wins, as in a shell.
        let variables = json.config.env.iter().filter_map(|line| line.split_once('='));
        let steps = json.history.into_iter().filter(|step| !step.empty_layer);
        let made_by = steps.map(|step| Some(line(&step.created_by)).filter(|line| !line.is_empty())).collect();
        Ok(Self {
            variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            command: json.config.entrypoint.into_iter().chain(json.config.cmd).collect(),
            folder: json.config.folder.filter(|folder| folder.is_absolute()),
            labels: json.config.labels,
            platform: json.os.zip(json.architecture).map(|(os, architecture)| format!("{os}/{architecture}")),
            diff_ids: json.rootfs.diff_ids,
            made_by,
        })
    }

    /// Of an image that says nothing but that.
    pub(super) fn of_platform(platform: Option<String>) -> Self {
        Self { platform, ..Self::default() }
    }

    /// Whether it says nothing of how a container is started.
    pub(in crate::inventory) fn is_silent(&self) -> bool {
        self.variables.is_empty() && self.command.is_empty() && self.labels.is_empty()
    }

    /// The line of the Dockerfile that made a layer, the lowest being 0, where the history is that of these layers.
    pub fn made_by(&self, layer: usize) -> Option<&str> {
        // A squashed image keeps its history and not its layers.
        (self.made_by.len() == self.diff_ids.len()).then(|| self.made_by.get(layer)?.as_deref()).flatten()
    }
}

/// A step of the history as the Dockerfile has it: builders before BuildKit write how they run a line, BuildKit adds its
/// own name.
fn line(created_by: &str) -> String {
    let text = created_by.trim().trim_end_matches("# buildkit").trim_end();
    let plain = match text.strip_prefix("/bin/sh -c ") {
        Some(rest) => match rest.trim_start().strip_prefix("#(nop)") {
            Some(other) => other.trim_start().to_owned(),
            None => format!("RUN {rest}"),
        },
        None => match text.strip_prefix("RUN /bin/sh -c ") {
            Some(rest) => format!("RUN {rest}"),
            None => text.to_owned(),
        },
    };
    // One line of a report, however long the step is.
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_as_lines() {
        for (created_by, expected) in [
            ("/bin/sh -c pip install  torch", "RUN pip install torch"),
            ("/bin/sh -c #(nop) COPY file:12 in / ", "COPY file:12 in /"),
            ("RUN /bin/sh -c pip install \\\n torch # buildkit", "RUN pip install \\ torch"),
            ("COPY . . # buildkit", "COPY . ."),
            ("", ""),
        ] {
            assert_eq!(line(created_by), expected);
        }
    }

    #[test]
    fn empty_steps_have_no_layer() {
        let json = br#"{"architecture": "amd64", "os": "linux", "rootfs": {"diff_ids": ["a", "b"]}, "config":
            {"Env": ["A=1", "A=2=3", "B"], "Cmd": null, "Entrypoint": ["python"], "Labels": null},
            "history": [{"created_by": "ADD x"}, {"created_by": "ENV A=1", "empty_layer": true}, {"created_by": "RUN y"}]}"#;
        let config = Config::parse(json).unwrap();
        assert_eq!((config.made_by(0), config.made_by(1), config.made_by(2)), (Some("ADD x"), Some("RUN y"), None));
        assert_eq!(config.variables.into_iter().collect::<Vec<_>>(), [("A".to_owned(), "2=3".to_owned())]);
        assert_eq!((config.command, config.platform.as_deref()), (vec!["python".to_owned()], Some("linux/amd64")));
        let words = Config::parse(br#"{"config": {"Entrypoint": "/bin/run", "Cmd": "a b"}}"#).unwrap();
        assert_eq!(words.command, ["/bin/run", "a b"]);
        let squashed =
            Config::parse(br#"{"rootfs": {"diff_ids": ["a"]}, "history": [{"created_by": "x"}, {}]}"#).unwrap();
        assert_eq!(squashed.made_by(0), None);
        assert!(Config::parse(b"[]").is_err());
    }
}
