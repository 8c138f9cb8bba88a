--- The version of the plugin and of the protocol it speaks; the backend must have the same protocol.
return { version = '0.1.0', protocol = 2 }
