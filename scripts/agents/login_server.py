"""A tool server over HTTP that wants a login, and its authorization server: both by the protocol's own library for Python. Prints its
address on loopback.
"""

from __future__ import annotations

import secrets
import socket
import time

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

#: The lifetime of a token, in seconds.
LIFETIME = 3600
SCOPE = "read"


class Logins:
    """Lets every client in, without a login page. The library calls these methods, and checks what clients send."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.tokens(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self.tokens(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def tokens(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        """Return new tokens for a client."""
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        common = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=int(time.time()) + LIFETIME, **common)
        self.refresh[refresh] = RefreshToken(token=refresh, **common)
        return OAuthToken(access_token=access, expires_in=LIFETIME, refresh_token=refresh, scope=" ".join(scopes))


def main() -> None:
    """Serve until this process is ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = AuthSettings(
        issuer_url=address,
        resource_server_url=f"{address}/mcp",
        required_scopes=[SCOPE],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]),
        revocation_options=RevocationOptions(enabled=True),
    )
    server = MCPServer("hub", auth_server_provider=Logins(), auth=settings)

    @server.tool()
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Good day, {name}!"

    print(address, flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning")).run([listener])


if __name__ == "__main__":
    main()
