//! A job that a real Slurm runs: a controller and one node on loopback, whose GPUs are two devices that every system has.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{export, lock, said};
use crate::run::stdout;

/// The daemons, which end with this.
struct Cluster {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

/// What nvidia-smi would say on the node.
const NVIDIA_SMI: &str = "#!/bin/sh\ncase \"$*\" in *driver_version*) echo \"$FAKE_DRIVER\" ;; *compute_cap*) echo \"$FAKE_CAPABILITY\" ;; esac\n";

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program of the system's administrator, which is not on everybody's PATH.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin";
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

impl Cluster {
    /// `None` where Slurm is not installed, or this is not root; `.ci/run` has both.
    fn start() -> Option<Self> {
        let root = stdout(Command::new("id").arg("-u")) == "0";
        let found = ["munged", "slurmctld", "slurmd"].map(|name| find(name).filter(|_| root));
        let [Some(munged), Some(slurmctld), Some(slurmd)] = found else {
            assert!(std::env::var_os("GPULOCK_TEST_SLURM").is_none(), "no Slurm, or not root");
            println!("skipped: needs slurmctld, slurmd and munge, and root");
            return None;
        };
        // Short: a socket's path has no more than 107 bytes.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("munge.key"), [7; 1024]).unwrap();
        fs::set_permissions(folder.path().join("munge.key"), fs::Permissions::from_mode(0o400)).unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("bin/nvidia-smi"), NVIDIA_SMI).unwrap();
        fs::set_permissions(folder.path().join("bin/nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
        let host = stdout(Command::new("hostname").arg("-s"));
        let (controller, node) = (free_port(), free_port());
        let configuration = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmctldPort={controller}\nSlurmdPort={node}\n\
             AuthType=auth/munge\nAuthInfo=socket={path}/munge.socket\nStateSaveLocation={path}/state\nSlurmdSpoolDir={path}/spool\n\
             SlurmctldPidFile={path}/slurmctld.pid\nSlurmdPidFile={path}/slurmd.pid\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_Core\nReturnToService=2\nGresTypes=gpu\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs=1 RealMemory=100 Gres=gpu:h100:2 Features=h100,rack1\n\
             PartitionName=main Nodes=ALL Default=YES State=UP\n"
        );
        fs::write(folder.path().join("slurm.conf"), configuration).unwrap();
        fs::write(
            folder.path().join("gres.conf"),
            "Name=gpu Type=h100 File=/dev/null\nName=gpu Type=h100 File=/dev/zero\n",
        )
        .unwrap();
        for name in ["state", "spool"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let option = |name: &str, file: &str| format!("--{name}={path}/{file}");
        let munge = [
            "--foreground".into(),
            "--force".into(),
            option("socket", "munge.socket"),
            option("key-file", "munge.key"),
            option("pid-file", "munge.pid"),
            option("log-file", "munge.log"),
            option("seed-file", "munge.seed"),
        ];
        let mut cluster = Self { folder, daemons: Vec::new() };
        cluster.daemon(Command::new(munged).args(munge), "munged");
        cluster.wait("munge.socket", |cluster| cluster.folder.path().join("munge.socket").exists());
        cluster.daemon(Command::new(slurmctld).arg("-D"), "slurmctld");
        cluster.daemon(Command::new(slurmd).arg("-D"), "slurmd");
        cluster.wait("an idle node", |cluster| {
            said(cluster.command("sinfo").args(["--noheader", "--format", "%T"])).1.trim() == "idle"
        });
        Some(cluster)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path =
            format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
        command
            .current_dir(self.folder.path())
            .env("SLURM_CONF", self.folder.path().join("slurm.conf"))
            .env("PATH", path);
        command
    }

    fn daemon(&mut self, command: &mut Command, name: &str) {
        let log = |end: &str| fs::File::create(self.folder.path().join(format!("{name}.{end}"))).unwrap();
        command.env("SLURM_CONF", self.folder.path().join("slurm.conf"));
        let daemon = command.stdin(Stdio::null()).stdout(log("out")).stderr(log("err")).spawn().unwrap();
        self.daemons.push(daemon);
    }

    fn wait(&self, what: &str, there: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !there(self) {
            let logs = || {
                ["munged.err", "slurmctld.err", "slurmd.err"]
                    .map(|name| fs::read_to_string(self.folder.path().join(name)))
            };
            assert!(begun.elapsed() < Duration::from_secs(60), "no {what}: {:#?}", logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends a job and waits for its end: whether it ended well, and what it printed.
    fn job(&self, options: &[&str], (driver, capability): (&str, &str), command: &[&str]) -> (bool, String) {
        let mut sbatch = self.command("sbatch");
        sbatch.args(["--wait", "--output=job.out"]).args(options).arg("job.sh").args(command);
        sbatch.envs([("FAKE_DRIVER", driver), ("FAKE_CAPABILITY", capability)]);
        let (good, text) = said(&mut sbatch);
        (good, text + &fs::read_to_string(self.folder.path().join("job.out")).unwrap_or_default())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // SIGTERM, so that they take their own processes along.
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }
}

#[test]
fn slurm_runs_the_job_where_the_lock_can() {
    let Some(cluster) = Cluster::start() else { return };
    let folder: &Path = cluster.folder.path();
    lock(folder, "2.8.0", "H100", "");
    export(folder, &["slurm", "--constraint", "h100&rack1", "--", "sh", "-c", "echo \"ran $NCCL_DEBUG $A\""], "job.sh");
    let right = ("580.65.06", "9.0");
    let (good, text) = said(cluster.command("sbatch").args(["--test-only", "job.sh"]));
    assert!(good && text.contains("in partition main"), "{text}");
    let (good, text) = cluster.job(&[], right, &[]);
    assert!(good && text.contains("ran WARN its \"$x\" `y` \\ ${{ z }}\n"), "{text}");
    let (good, text) =
        cluster.job(&["--gpus-per-node=h100:2"], right, &["sh", "-c", "echo gpus=$CUDA_VISIBLE_DEVICES"]);
    assert!(good && text.contains("gpus=0,1\n"), "{text}");
    let (good, text) = cluster.job(&[], ("520.61.05", "9.0"), &[]);
    assert!(
        !good && text.contains("driver 520.61.05, and the lock needs 525.60.13 or later") && !text.contains("ran "),
        "{text}"
    );
    let (good, text) = cluster.job(&[], ("580.65.06", "8.0"), &[]);
    assert!(
        !good && text.contains("compute capability 8.0, and the lock is for 9.0") && !text.contains("ran "),
        "{text}"
    );
    // What the site does not have is Slurm's to refuse.
    export(folder, &["slurm", "--constraint", "a100"], "job.sh");
    let (good, text) = cluster.job(&[], right, &["true"]);
    assert!(!good && text.contains("Invalid feature specification"), "{text}");
    export(folder, &["slurm", "--gpus", "3"], "job.sh");
    let (good, text) = cluster.job(&[], right, &["true"]);
    assert!(!good && text.contains("Requested node configuration is not available"), "{text}");
}
