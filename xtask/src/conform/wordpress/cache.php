<?php
/*
 * Sends the fields of the plugin LiteSpeed Cache, which is not in Debian: lifetime and tags of pages for visitors, purges by
 * tag when posts and comments change, and the cookie of visitors who see other pages. Counts the requests that PHP handles.
 */

file_put_contents(WP_CONTENT_DIR . '/requests.log', ($_SERVER['REQUEST_URI'] ?? '') . "\n", FILE_APPEND);
/* The check comments twice within 15 seconds. */
add_filter('comment_flood_filter', '__return_false', 99);
if (empty($_SERVER['HTTP_X_LSCACHE'])) {
    return;
}

const HARBOUR_TAGS = 'b1c_';
const HARBOUR_VARY = '_lscache_vary';

/* Pages without an own decision, such as those of the administration and of the API. */
header('X-LiteSpeed-Cache-Control: no-cache');

add_action('template_redirect', function () {
    $is_own = is_user_logged_in() || !empty($_COOKIE['comment_author_' . COOKIEHASH]) || is_preview();
    if ($is_own || is_404() || is_search() || !empty($_POST)) {
        return;
    }
    $tags = [''];
    if (is_front_page()) $tags[] = 'F';
    if (is_home()) $tags[] = 'H';
    if (is_feed()) $tags[] = 'FD';
    if (is_singular()) $tags[] = 'Po.' . get_queried_object_id();
    header('X-LiteSpeed-Cache-Control: public,max-age=604800');
    header('X-LiteSpeed-Tag: ' . implode(',', array_map(fn ($tag) => HARBOUR_TAGS . $tag, $tags)));
});

function harbour_purge($post) {
    $tags = array_map(fn ($tag) => HARBOUR_TAGS . $tag, ['Po.' . $post, 'F', 'H', 'FD']);
    header('X-LiteSpeed-Purge: public,' . implode(',', $tags), false);
}
add_action('clean_post_cache', 'harbour_purge');
add_action('wp_update_comment_count', 'harbour_purge');

function harbour_vary($value, $expires) {
    setcookie(HARBOUR_VARY, $value, $expires, COOKIEPATH, COOKIE_DOMAIN, is_ssl(), true);
}
add_action('init', fn () => is_user_logged_in() && ($_COOKIE[HARBOUR_VARY] ?? '') !== 'editor' && harbour_vary('editor', 0));
add_action('set_logged_in_cookie', fn ($cookie, $expire, $expiration) => harbour_vary('editor', $expiration), 10, 3);
add_action('clear_auth_cookie', fn () => harbour_vary('', 1));
add_action('set_comment_cookies', fn () => harbour_vary('commenter', time() + 86400), 20);
