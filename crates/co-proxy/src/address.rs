//! Recognizes the addresses that are not on the internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// The address at which virtual machines in Azure reach the services of their host. It is in no range of special-purpose
/// addresses.
const AZURE_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// The reason why an address of this machine is not on the internet.
const THIS_MACHINE: &str = "this machine";

/// Returns the reason why an address is not on the internet, such as "this machine". Returns `None` for an address on the
/// internet.
///
/// The ranges of such addresses are those of IANA's registries of special-purpose addresses. An IPv6 address that embeds an IPv4
/// address is judged as this IPv4 address. An address of this machine is never on the internet, because connections to it bypass
/// the firewall.
pub(crate) fn special(address: IpAddr) -> Option<&'static str> {
    let special = match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => special_v4(inner),
            None => special_v6(address),
        },
    };
    special.or_else(|| is_own(address).then_some(THIS_MACHINE))
}

/// Returns true if a connection to the address ends on this machine.
pub(crate) fn is_this_machine(address: IpAddr) -> bool {
    special(address) == Some(THIS_MACHINE)
}

/// Returns true if the address belongs to this machine. Connects a UDP socket, which sends nothing, and compares the socket's own
/// address.
fn is_own(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 1))?;
        socket.local_addr()
    };
    source().is_ok_and(|it| it.ip() == address)
}

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) | (0, ..) => Some(THIS_MACHINE),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("a private network"),
        (100, 64..=127, _) => Some("a provider's private network"),
        (169, 254, _) => Some("this link, where clouds give credentials"),
        _ if address == AZURE_HOST => Some("the host of this virtual machine"),
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            Some("a reserved network")
        }
        (224..=239, ..) => Some("many machines at once"),
        (240..=255, ..) => Some("a reserved network"),
        _ => None,
    }
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_loopback() || address.is_unspecified() {
        return Some(THIS_MACHINE);
    }
    let [a, b, ..] = address.segments();
    match (a, b) {
        (0xfc00..=0xfdff, _) => Some("a private network"),
        (0xfe80..=0xfeff, _) => Some("this link"),
        (0xff00..=0xffff, _) => Some("many machines at once"),
        // Teredo and others of protocols; documentation.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x3fff, 0..=0xfff) => Some("a reserved network"),
        (0x2000..=0x3fff, _) => None,
        _ => Some("a reserved network"),
    }
}

/// Returns the address and, if it embeds an IPv4 address, that IPv4 address.
pub(crate) fn forms(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let inner = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedded(address),
    };
    std::iter::once(address).chain(inner.map(IpAddr::V4))
}

/// Returns the IPv4 address that an IPv6 address embeds: mapped, compatible, NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => of(g, h),
        (0, 0, 0, 0, 0, 0) if g > 0 => of(g, h),
        (0x2002, ..) => of(b, c),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_known() {
        assert!(is_own("127.0.0.1".parse().unwrap()));
        assert!(!is_own("1.1.1.1".parse().unwrap()));
        let socket = UdpSocket::bind(("0.0.0.0", 0)).unwrap();
        // Without a route there is no own address to try.
        if socket.connect(("1.1.1.1", 1)).is_ok() {
            assert!(is_own(socket.local_addr().unwrap().ip()));
        }
    }

    #[test]
    fn only_addresses_of_the_internet_are_not_special() {
        for public in [
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "169.253.0.1",
            "192.0.1.1",
            "192.167.0.1",
            "198.17.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert_eq!(special(public.parse().unwrap()), None, "{public}");
        }
        for other in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "3fff::1",
            "4000::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(special(other.parse().unwrap()).is_some(), "{other}");
        }
    }
}
