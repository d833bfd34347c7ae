//! The shape of an emulated machine, as the arguments that QEMU wants.
//!
//! CPUs are numbered as QEMU does: threads of a core are neighbours, then come the cores of a die.
//! A die is a last-level cache. Nodes divide a socket into ranges of CPUs, whether or not these are
//! ranges of whole dies.

use serde::Deserialize;

/// Distances as firmware gives them: in the node, in the socket, in another socket. Beyond 30
/// (RECLAIM_DISTANCE) a kernel does not spread forks over nodes, hint or not.
const NODE_DISTANCES: [u32; 3] = [10, 12, 21];

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub sockets: u32,
    /// Of a socket. Each has a last-level cache.
    pub dies: u32,
    /// Of a die.
    pub cores: u32,
    /// Of a core.
    pub threads: u32,
    #[serde(default = "one")]
    pub nodes_per_socket: u32,
    pub mib_per_node: u32,
    /// What the kernel says about this machine at boot, and may: regular expressions.
    #[serde(default)]
    pub tolerates: Vec<String>,
}

fn one() -> u32 {
    1
}

impl Machine {
    pub fn cpus(&self) -> u32 {
        self.sockets * self.dies * self.cores * self.threads
    }

    pub fn llcs(&self) -> u32 {
        self.sockets * self.dies
    }

    pub fn nodes(&self) -> u32 {
        self.sockets * self.nodes_per_socket
    }

    pub fn qemu_arguments(&self) -> Vec<String> {
        let Self { sockets, dies, cores, threads, .. } = self;
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
        add(
            "-smp",
            format!(
                "{},sockets={sockets},dies={dies},cores={cores},threads={threads}",
                self.cpus()
            ),
        );
        add("-m", format!("{}M", self.nodes() * self.mib_per_node));
        let cpus_per_node = self.cpus() / self.nodes();
        for node in 0..self.nodes() {
            let first = node * cpus_per_node;
            let last = first + cpus_per_node - 1;
            add(
                "-object",
                format!("memory-backend-ram,id=memory{node},size={}M", self.mib_per_node),
            );
            add("-numa", format!("node,nodeid={node},memdev=memory{node},cpus={first}-{last}"));
        }
        for node in 0..self.nodes() {
            for other in node + 1..self.nodes() {
                let distance = self.distance(node, other);
                add("-numa", format!("dist,src={node},dst={other},val={distance}"));
            }
        }
        arguments
    }

    fn distance(&self, node: u32, other: u32) -> u32 {
        let [same, socket, remote] = NODE_DISTANCES;
        let socket_of = |node: u32| node / self.nodes_per_socket;
        match node == other {
            true => same,
            false if socket_of(node) == socket_of(other) => socket,
            false => remote,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_sockets_of_two_nodes() -> Machine {
        Machine {
            sockets: 2,
            dies: 2,
            cores: 2,
            threads: 2,
            nodes_per_socket: 2,
            mib_per_node: 512,
            tolerates: Vec::new(),
        }
    }

    #[test]
    fn nodes_are_ranges_of_cpus() {
        let arguments = two_sockets_of_two_nodes().qemu_arguments();
        assert!(arguments.contains(&"node,nodeid=3,memdev=memory3,cpus=12-15".to_owned()));
        assert!(arguments.contains(&"2048M".to_owned()));
    }

    #[test]
    fn distances_tell_sockets_apart() {
        let arguments = two_sockets_of_two_nodes().qemu_arguments();
        assert!(arguments.contains(&"dist,src=0,dst=1,val=12".to_owned()));
        assert!(arguments.contains(&"dist,src=1,dst=2,val=21".to_owned()));
    }
}
