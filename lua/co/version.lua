--- The version of the plugin, and the version of the protocol, which must be that of the backend.
return { version = '0.1.0', protocol = 31 }
