"""Images of another size; see `passes.fusion.functions`."""

from lowering.ops import emit, integers
from lowering.passes.fusion.functions import RESIZING
from lowering.registry import rule
from lowering.targets import PORTABLE


@rule("resize_images", target=PORTABLE)
def resize_images(ctx, x, *, size, method):
    return emit(RESIZING[method], x, integers(size), align_corners=False, half_pixel_centers=True)
