<?php
// Routes that the step `laravel` of `cargo xtask conform` requests.
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Route;

Route::get('/', fn () => 'Boats for hire');
Route::get('/boats/{name}', fn (Request $request, string $name) => [
    'name' => $name,
    'path' => $request->path(),
    'query' => $request->query('seats'),
    'url' => $request->fullUrl(),
    'secure' => $request->secure(),
]);
Route::get('/form', fn () => '<form method="post"><input type="hidden" name="_token" value="' . csrf_token() . '"></form>');
Route::post('/form', function (Request $request) {
    $picture = $request->file('picture');
    $request->session()->put('text', $request->input('text') . ', ' . ($picture ? $picture->getSize() : 0));

    return redirect('/text');
});
Route::get('/text', fn (Request $request) => $request->session()->get('text', 'nothing'));
Route::match(['put', 'patch', 'delete'], '/boats/{name}', fn (Request $request, string $name) => $request->method() . " $name");
Route::get('/user', fn (Request $request) => $request->getUser() . ', ' . $request->getPassword());
Route::get('/download', fn () => response()->download(__FILE__, 'routes.txt'));
Route::get('/stream', fn () => response()->stream(function () {
    for ($piece = 0; $piece < 1000; $piece++) {
        echo str_repeat(sprintf('%04d', $piece), 250);
        flush();
    }
}));
Route::fallback(fn () => response('No such boat', 404));
