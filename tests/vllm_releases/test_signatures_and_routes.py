from extract_catalogue.routes import GATE, routes
from extract_catalogue.signatures import signatures
from vllm_sources import tree_of

ENGINE = """
    class Pausing:
        async def resume_generation(self) -> None: ...

    class AsyncLLM(Pausing):
        async def pause_generation(self, *, mode="abort", clear_cache: bool = True): ...
        async def update_weights(self, request): ...
        def private(self): ...
"""
LLM = """
    class LLM:
        @overload
        def generate(self, prompts, *, old=None): ...
        def generate(self, prompts, params=None): ...
"""


def test_methods_are_found_with_their_defaults_also_in_bases() -> None:
    found = signatures(tree_of(v1__engine__async_llm=ENGINE, entrypoints__llm=LLM))
    assert found["pause_generation"] == {"mode": "abort", "clear_cache": True}
    assert found["update_weights"] == {"request": {"required": True}}
    assert found["resume_generation"] == {}
    assert "private" not in found


def test_an_implementation_counts_and_not_its_overloads() -> None:
    found = signatures(tree_of(v1__engine__async_llm=ENGINE, entrypoints__llm=LLM))
    assert list(found["LLM.generate"]) == ["prompts", "params"]


def test_a_handler_inside_the_switch_needs_the_variable() -> None:
    server = """
        @router.get("/health")
        async def health(): ...

        if envs.VLLM_SERVER_DEV_MODE:
            @router.post("/sleep")
            async def sleep(): ...
    """
    assert routes(tree_of(entrypoints__api_server=server)) == {"/health": "", "/sleep": GATE}


def test_a_router_that_leaves_without_the_variable_needs_it() -> None:
    router = """
        @router.post("/pause")
        async def pause(): ...

        def attach_router(app):
            if not envs.VLLM_SERVER_DEV_MODE:
                return
            app.include_router(router)
    """
    assert routes(tree_of(entrypoints__rlhf=router)) == {"/pause": GATE}


def test_a_router_that_is_only_imported_under_the_variable_needs_it() -> None:
    server = """
        def register(app):
            if envs.VLLM_SERVER_DEV_MODE:
                from vllm.entrypoints.factories import register_rl
                register_rl(app)
            from vllm.entrypoints.models import attach
            attach(app)
    """
    factories = """
        def register_rl(app):
            from .online.api_router import router
            app.include_router(router)
    """
    online = """
        router = APIRouter()

        @router.post("/update_weights")
        async def update(): ...
    """
    models = """
        @router.get("/v1/models")
        async def models(): ...

        def attach(app): ...
    """
    tree = tree_of(
        entrypoints__server=server,
        entrypoints__factories=factories,
        entrypoints__online__api_router=online,
        entrypoints__models=models,
    )
    assert routes(tree) == {"/update_weights": GATE, "/v1/models": ""}
