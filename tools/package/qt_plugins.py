"""Qt's plugins, each kept or dropped for a stated reason. Plugins that no self-test loads are kept for users who need
them.

Names are "kind/file", without the prefix and suffix that a system gives libraries; "kind/" means all others of a kind.
Reading aloud needs no plugin: Qt communicates with screen readers from its own library, on each system.
"""

from __future__ import annotations

from pathlib import PurePosixPath

KEPT = {
    "platforms/qxcb": "windows under X11",
    "platforms/qwayland": "windows under Wayland",
    "platforms/qwindows": "windows on Windows",
    "platforms/qcocoa": "windows on macOS",
    "platforms/qoffscreen": "the self-test, export, and a start without a display",
    "platforminputcontexts/composeplatforminputcontextplugin": "accents by dead keys and Compose under X11",
    "platforminputcontexts/ibusplatforminputcontextplugin": "input methods of Chinese, Japanese, Korean and others",
    "platformthemes/qxdgdesktopportal": "the desktop's own file dialogs, its dark scheme and its contrast",
    "imageformats/qsvg": "the signs of the style sheet",
    "imageformats/qwebp": "the stills of a film",
    "styles/qmodernwindowsstyle": "what Fusion asks the system for, on Windows",
    "styles/qmacstyle": "the same on macOS",
    "wayland-shell-integration/xdg-shell": "without it there is no window under Wayland",
    "wayland-decoration-client/bradient": "title bars where the compositor draws none",
    "wayland-decoration-client/adwaita": "title bars as GNOME has them, which draws none",
    "wayland-graphics-integration-client/qt-plugin-wayland-egl": "asked for at a start under Wayland",
}
DROPPED = {
    "platforms/": "screens without a desktop, or for remote machines: nobody sits there",
    "platforminputcontexts/": "a keyboard on the screen, drawn by QML, which is not there",
    "platformthemes/": "would load the GTK of the system beside libraries of other versions",
    "imageformats/": "no other picture is read; PNG is in Qt's own library",
    "iconengines/": "icons are drawn by app/resources.py, in the colours of the theme",
    "wayland-shell-integration/": "compositors of cars, kiosks, and before 2016",
    "wayland-graphics-integration-client/": "for OpenGL and Vulkan, which nothing draws with",
    "wayland-graphics-integration-server/": "for compositors",
    "egldeviceintegrations/": "screens without a desktop",
    "xcbglintegrations/": "for OpenGL, which nothing draws with",
    "generic/": "mice and keyboards without a desktop",
    "printsupport/": "nothing prints: pictures are exported as PDF, which is in Qt's own library",
    "networkinformation/": "nothing is fetched",
    "tls/": "nothing is fetched",
    "permissions/": "no camera, no microphone, no place is asked for",
    "sqldrivers/": "run files are read by Python's own SQLite",
    "vectorimageformats/": "no film is read",
    "designer/": "for the making of programs",
    "qmllint/": "for the making of programs",
    "qmltooling/": "for the making of programs",
}


def is_kept(path: PurePosixPath) -> bool:
    """Return whether a package includes the plugin at a path that ends in its kind and its file."""
    return name_of(path) in KEPT


def reason(name: str) -> str | None:
    """Return the reason why the plugin "kind/file" is kept or dropped, or None if this has not been decided."""
    return KEPT.get(name) or DROPPED.get(f"{name.split('/')[0]}/")


def name_of(path: PurePosixPath) -> str:
    """Return the name of a plugin by the path of its library."""
    return f"{path.parts[-2]}/{path.name.removeprefix('lib').split('.')[0]}"
